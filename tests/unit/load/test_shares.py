"""Several workers together do exactly what one would."""

from __future__ import annotations

from itertools import count, islice

import pytest

from gpu_dash.load.protocol import SetLoad, Tick
from gpu_dash.load.shares import add_ticks, share_of


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("concurrency", [1, 2, 7, 8, 100])
@pytest.mark.parametrize("requests", [None, 1, 5, 64])
def test_places_and_requests_add_up(workers: int, concurrency: int, requests: int | None) -> None:
    load = SetLoad(step=4, concurrency=concurrency, requests=requests)
    shares = [share_of(load, index, workers) for index in range(workers)]
    senders = [share for share in shares if share.sends]
    if requests is None:
        assert sum(share.places or 0 for share in senders) == concurrency
        assert {share.requests for share in senders} == {None}
    else:
        assert sum(share.requests or 0 for share in senders) == requests
        assert all(share.places and share.requests for share in senders)
    assert {share.step for share in shares} == {4}
    assert {share.concurrency for share in senders} == {concurrency}
    if requests is not None:
        indexes = [
            index
            for share in senders
            for index in islice(count(share.share_index, share.share_count), share.requests)
        ]
        assert sorted(indexes) == list(range(requests))


def test_of_one_schedule_each_worker_takes_every_third_arrival() -> None:
    load = SetLoad(step=1, concurrency=0, rate=9.0, requests=4)
    shares = [share_of(load, index, 3) for index in range(3)]
    assert [(share.share_index, share.share_count) for share in shares] == [(0, 3), (1, 3), (2, 3)]
    assert [(share.rate, share.requests) for share in shares] == [(9.0, 2), (9.0, 1), (9.0, 1)]
    assert not share_of(SetLoad(step=1, concurrency=0, rate=9.0, requests=1), 2, 3).sends


def test_an_end_is_an_end_for_all() -> None:
    load = SetLoad(step=2, concurrency=0)
    assert [share_of(load, index, 2) for index in range(2)] == [load, load]


def test_ticks_add_up_and_the_worst_lag_stands() -> None:
    one = Tick(
        at=1.0, interval_s=0.25, in_flight=2, path="direct", output_tokens=5, requests_ok=1,
        ttft={7: 1}, send_lags={1: 1}, loop_lag_s=0.001, cpu_s=0.1, busiest_cpu_s=0.1,
    )  # fmt: skip
    other = Tick(
        at=1.1, interval_s=0.26, in_flight=3, path="direct", output_tokens=6, requests_failed=2,
        ttft={7: 2, 8: 1}, gaps={3: 4}, loop_lag_s=0.2, cpu_s=0.2, busiest_cpu_s=0.2,
    )  # fmt: skip
    both = add_ticks([one, other])
    assert (both.in_flight, both.output_tokens, both.requests_ok, both.requests_failed) == (
        5, 11, 1, 2,
    )  # fmt: skip
    assert (both.ttft, both.gaps, both.send_lags) == ({7: 3, 8: 1}, {3: 4}, {1: 1})
    assert both.loop_lag_s == 0.2
    assert both.cpu_s == pytest.approx(0.3)
    assert both.busiest_cpu_s == 0.2
