"""The vertical scale of a chart."""

from __future__ import annotations

import math
from dataclasses import dataclass

_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """From the bottom of a chart to its top."""

    low: float
    high: float

    @classmethod
    def from_zero(cls, top: float | None) -> Scale:
        """From 0 to the next round number: 1, 2, 2.5 or 5 times a power of ten."""
        if top is None or top <= 0:
            return cls(0.0, 1.0)
        size = 10.0 ** math.floor(math.log10(top))
        return cls(0.0, next(size * step for step in _ROUND if size * step >= top))

    @classmethod
    def around(cls, bottom: float | None, top: float | None, grid: float) -> Scale:
        """Around values, from grid line to grid line, and never flat."""
        if bottom is None or top is None:
            return cls(0.0, grid)
        low = math.floor(bottom / grid) * grid
        return cls(low, max(math.ceil(top / grid) * grid, low + grid))

    def holds(self, value: float) -> bool:
        """Whether a value is above the bottom and not beyond the top."""
        return self.low < value <= self.high

    def share(self, value: float) -> float:
        """Where a value lies: 0 at the bottom, 1 at the top."""
        return (value - self.low) / (self.high - self.low)
