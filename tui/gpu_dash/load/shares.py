"""What each of several workers gets of a load, and what their ticks come to together."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpu_dash.load.protocol import SetLoad, Tick
from gpu_dash.model.histogram import Histogram


def share_of(load: SetLoad, index: int, workers: int) -> SetLoad:
    """One worker's share: places and requests differ by one at most, and of one schedule of
    arrivals each worker takes every so-manieth.

    Args:
        load: what all of them are asked for.
        index: which of the workers, from 0.
        workers: how many there are.
    """
    if load.rate is not None:
        requests = _part(load.requests, index, workers)
        if requests == 0:
            return SetLoad(step=load.step, concurrency=0)
        return msgspec.structs.replace(
            load, requests=requests, share_index=index, share_count=workers
        )
    if load.concurrency == 0:
        return load
    places = _part(load.concurrency, index, workers) or 0
    senders = min(workers, load.concurrency)
    requests = _part(load.requests, index, senders) if places else 0
    if places == 0 or requests == 0:
        return SetLoad(step=load.step, concurrency=0)
    return msgspec.structs.replace(
        load, places=places, requests=requests, share_index=index, share_count=senders
    )


def add_ticks(ticks: Sequence[Tick]) -> Tick:
    """The ticks of several workers as one: counts and processor time are added, the lag is that
    of the worst."""
    if len(ticks) == 1:
        return ticks[0]
    sums = {name: Histogram() for name in ("ttft", "gaps", "send_lags")}
    for tick in ticks:
        for name, histogram in sums.items():
            histogram.merge(getattr(tick, name))
    return Tick(
        at=max(tick.at for tick in ticks),
        interval_s=max(tick.interval_s for tick in ticks),
        in_flight=sum(tick.in_flight for tick in ticks),
        path=ticks[0].path,
        output_tokens=sum(tick.output_tokens for tick in ticks),
        requests_ok=sum(tick.requests_ok for tick in ticks),
        requests_failed=sum(tick.requests_failed for tick in ticks),
        ttft=sums["ttft"].counts,
        gaps=sums["gaps"].counts,
        send_lags=sums["send_lags"].counts,
        loop_lag_s=max(tick.loop_lag_s for tick in ticks),
        cpu_s=sum(tick.cpu_s for tick in ticks),
        busiest_cpu_s=max(tick.busiest_cpu_s for tick in ticks),
    )


def _part(whole: int | None, index: int, parts: int) -> int | None:
    return None if whole is None else whole // parts + (index < whole % parts)
