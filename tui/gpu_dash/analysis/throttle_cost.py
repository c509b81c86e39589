"""What a throttle cost: output tokens/s before it and during it, at the same load.

``during`` is the throughput from the throttle's begin to its end, as far as both lie in the window
of one step. ``before`` is the throughput in the same window before it, over the last
:data:`BEFORE_S` seconds, the time in which any card throttled left out. Either is ``None`` with
less than :data:`LEAST_S` seconds to go by: a throttle that was there when the window opened has
nothing to be compared with, and no cost is invented for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpu_dash.analysis.token_flow import TokenFlow

BEFORE_S = 30.0
LEAST_S = 1.0
"""Tokens are known to about a second, see :mod:`~gpu_dash.analysis.token_flow`."""

Span = tuple[float, float]
"""From one moment to another."""


@dataclass(frozen=True)
class ThrottleCost:
    """Output tokens per second at one load."""

    before_tokens_per_s: float | None = None
    during_tokens_per_s: float | None = None

    @property
    def change(self) -> float | None:
        """Relative: −0.25 is a quarter less. ``None`` where one of the two is not known."""
        before, during = self.before_tokens_per_s, self.during_tokens_per_s
        return during / before - 1 if before and during is not None else None


def throttle_cost(
    throttle: Span, windows: Sequence[Span], throttled: Sequence[Span], flow: TokenFlow
) -> ThrottleCost:
    """What one throttle cost.

    Args:
        throttle: begin and end.
        windows: of the steps; load is constant in each.
        throttled: when any card was throttled, this throttle included.
        flow: the tokens of the session.
    """
    began, ended = throttle
    window = next(((opens, closes) for opens, closes in windows if opens <= began < closes), None)
    if window is None:
        return ThrottleCost()
    opens, closes = window
    free = list(_without((max(opens, began - BEFORE_S), began), throttled))
    return ThrottleCost(
        before_tokens_per_s=_rate(free, flow),
        during_tokens_per_s=_rate([(began, min(ended, closes))], flow),
    )


def _without(span: Span, throttled: Sequence[Span]) -> Iterator[Span]:
    """The parts of a span in which no card was throttled."""
    start, end = span
    for began, ended in sorted(throttled):
        if ended <= start or began >= end:
            continue
        if began > start:
            yield start, began
        start = max(start, ended)
    if start < end:
        yield start, end


def _rate(spans: Sequence[Span], flow: TokenFlow) -> float | None:
    seconds = sum(end - start for start, end in spans)
    if seconds < LEAST_S:
        return None
    return sum(flow.tokens(start, end) for start, end in spans) / seconds
