"""The load's ticks, made again from its requests.

Ticks are not recorded: each request says when it was sent, when its first token came, when its
last one did and how many there were (:mod:`~gpu_dash.analysis.token_flow`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu_dash.analysis.percentile import percentile
from gpu_dash.analysis.token_flow import first_and_last_token, spread
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
    first_token, last_token = first_and_last_token(request, reported_at)
    ended = intervals[_index(last_token)]
    if request.outcome is Outcome.OK:
        ended.ok += 1
    else:
        ended.failed += 1
    if request.ttft_s is not None:
        intervals[_index(first_token)].ttfts.append(request.ttft_s)
    for index in range(_index(request.sent), _index(last_token) + 1):
        intervals[index].in_flight += 1
    for index, tokens in spread(request.output_tokens, first_token, last_token, INTERVAL_S):
        intervals[index].tokens += tokens
        if request.tpot_s is not None:
            intervals[index].tpots.append(request.tpot_s)


def _index(moment: float) -> int:
    return int(moment // INTERVAL_S)
