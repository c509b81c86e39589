"""The load's ticks, made again from its requests.

Ticks are not recorded: each request says when it was sent, when its first token came, when its
last one did and how many there were. Its tokens are spread evenly between the two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu_dash.analysis.percentile import percentile
from gpu_dash.model.events import LoadTick
from gpu_dash.model.load import Outcome, RequestRecord

INTERVAL_S = 0.5


@dataclass
class _Interval:
    tokens: float = 0.0
    in_flight: int = 0
    ok: int = 0
    failed: int = 0
    ttfts: list[float] = field(default_factory=list)
    tpots: list[float] = field(default_factory=list)


def ticks_of(requests: Sequence[tuple[float, RequestRecord]]) -> list[LoadTick]:
    """Ticks from the first send to the last end, while there was load.

    Args:
        requests: each with the moment at which its end was reported.
    """
    intervals: defaultdict[int, _Interval] = defaultdict(_Interval)
    for reported_at, request in requests:
        _spread(intervals, request, reported_at)
    ticks = []
    carried = 0.0
    for index in sorted(intervals):
        interval = intervals[index]
        carried += interval.tokens
        tokens = round(carried)
        carried -= tokens
        ticks.append(
            LoadTick(
                at=(index + 1) * INTERVAL_S,
                in_flight=interval.in_flight,
                interval_s=INTERVAL_S,
                output_tokens=tokens,
                requests_ok=interval.ok,
                requests_failed=interval.failed,
                ttft_p50_s=percentile(interval.ttfts, 50),
                itl_p50_s=percentile(interval.tpots, 50),
            )
        )
        if index + 1 not in intervals:
            ticks.append(
                LoadTick(
                    at=(index + 2) * INTERVAL_S,
                    in_flight=0,
                    interval_s=INTERVAL_S,
                    output_tokens=0,
                )
            )
    return ticks


def _spread(
    intervals: defaultdict[int, _Interval], request: RequestRecord, reported_at: float
) -> None:
    last_token = reported_at if request.e2e_s is None else request.sent + request.e2e_s
    first_token = last_token if request.ttft_s is None else request.sent + request.ttft_s
    ended = intervals[_index(last_token)]
    if request.outcome is Outcome.OK:
        ended.ok += 1
    else:
        ended.failed += 1
    if request.ttft_s is not None:
        intervals[_index(first_token)].ttfts.append(request.ttft_s)
    for index in range(_index(request.sent), _index(last_token) + 1):
        interval = intervals[index]
        interval.in_flight += 1
        opens, closes = index * INTERVAL_S, (index + 1) * INTERVAL_S
        overlap = min(closes, last_token) - max(opens, first_token)
        if request.output_tokens == 0 or overlap < 0:
            continue
        if last_token > first_token:
            interval.tokens += request.output_tokens * overlap / (last_token - first_token)
        elif index == _index(last_token):
            interval.tokens += request.output_tokens
        if request.tpot_s is not None:
            interval.tpots.append(request.tpot_s)


def _index(moment: float) -> int:
    return int(moment // INTERVAL_S)
