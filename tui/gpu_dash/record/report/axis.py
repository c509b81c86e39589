"""Axes: from values to places on the picture, and where their labels stand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_TIME_STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
)  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """A stretch of values on a stretch of the picture.

    Attributes:
        low: value at ``start``.
        high: value at ``end``; above ``low``.
        start: pixels.
        end: pixels; below ``start`` for an axis that goes up.
        is_logarithmic: equal ratios are equally long; ``low`` is then above 0.
    """

    low: float
    high: float
    start: float
    end: float
    is_logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where a value stands; one beyond an end stands at that end."""
        share = (self._scaled(value) - self._scaled(self.low)) / (
            self._scaled(self.high) - self._scaled(self.low)
        )
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)

    def holds(self, value: float) -> bool:
        """Whether a value is on the axis."""
        return self.low <= value <= self.high

    def _scaled(self, value: float) -> float:
        return math.log(max(value, self.low)) if self.is_logarithmic else value


def round_step(span: float, count: int) -> float:
    """The round number (1, 2, 2.5 or 5 times a power of ten) by which a span has at most
    ``count`` parts."""
    raw = span / count
    size = 10.0 ** math.floor(math.log10(raw))
    return next(step * size for step in _ROUND if step * size >= raw * (1 - 1e-9))


def linear_ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round values from one end to the other."""
    step = round_step(high - low, count)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times each power of ten between two values above 0; only the powers where those
    are many, and the linear ones where they are fewer than two."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1.0, 2.0, 5.0) if len(powers) <= 4 else (1.0,)
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    held = [tick for tick in ticks if low <= tick <= high]
    return held if len(held) > 1 else linear_ticks(low, high)


def time_ticks(start_s: float, end_s: float, count: int = 10) -> list[float]:
    """Round moments between two others."""
    raw = (end_s - start_s) / count
    step = next((step for step in _TIME_STEPS_S if step >= raw), None)
    if step is None:
        step = math.ceil(raw / 86400) * 86400
    first = math.ceil(start_s / step)
    return [float(number * step) for number in range(first, int(end_s // step) + 1)]


def from_zero(values: Iterable[float | None]) -> tuple[float, float]:
    """A scale from 0 to a little above the highest value."""
    top = max((value for value in values if value is not None), default=0.0)
    return (0.0, top * 1.06) if top > 0 else (0.0, 1.0)


def around(values: Iterable[float | None], least: float) -> tuple[float, float]:
    """A scale around values, and at least ``least`` long."""
    known = [value for value in values if value is not None]
    if not known:
        return 0.0, least
    low, high = min(known), max(known)
    pad = max((high - low) * 0.06, (least - (high - low)) / 2)
    return low - pad, high + pad
