"""The one time axis that all charts stand on.

It moves by pages, not by the second: the picture stands still while the newest column grows
towards the right edge, then everything moves left at once. That is easier to read than a crawl,
and an ssh line carries a tenth of the bytes. Its labels are seconds since the session's start,
which is ``time_s`` in the session's files.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_dash.ui.render.braille import DOTS_ACROSS
from gpu_dash.ui.render.format import clock

WINDOWS_S = (120.0, 300.0, 900.0, 3600.0)
"""What the window key goes through."""
_PAGES = 12
_TICKS_S = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_CELLS_PER_LABEL = 12


@dataclass(frozen=True)
class TimeAxis:
    """Moments to columns.

    Attributes:
        start: monotonic moment of the left edge.
        window_s: seconds from edge to edge.
        width: cells.
        origin: monotonic moment that the labels count from.
    """

    start: float
    window_s: float
    width: int
    origin: float

    @classmethod
    def around(
        cls, now: float, window_s: float, width: int, *, origin: float, earliest: float
    ) -> TimeAxis:
        """The page that holds ``now``; it begins where the data begin when they are young."""
        page = window_s / _PAGES
        pages_ended = (now - origin) // page
        start = origin + (pages_ended + 1) * page - window_s
        if earliest > start:
            start = min(origin + (earliest - origin) // page * page, now)
        return cls(start=start, window_s=window_s, width=max(1, width), origin=origin)

    @property
    def dots(self) -> int:
        """Columns of dots."""
        return self.width * DOTS_ACROSS

    @property
    def seconds_per_dot(self) -> float:
        """Time between two columns of dots."""
        return self.window_s / self.dots

    def dot(self, moment: float) -> int:
        """Column of dots of a moment; outside of ``range(dots)`` when it is not on the axis."""
        return int((moment - self.start) / self.window_s * self.dots // 1)

    def cell(self, moment: float) -> int:
        """Column of cells of a moment; outside of ``range(width)`` when it is not on the axis."""
        return int((moment - self.start) / self.window_s * self.width // 1)

    def span_text(self) -> str:
        """From edge to edge, for where labels have no room: ``0:30–2:30``; ``to 1:50`` when it
        begins before the session."""
        first = self.start - self.origin
        end = clock(first + self.window_s)
        return f"to {end}" if first < 0 else f"{clock(first)}–{end}"

    def ticks(self) -> list[tuple[int, float]]:
        """Where labels stand: column of cells, seconds since the origin; none before it."""
        wanted = self.window_s * _CELLS_PER_LABEL / self.width
        step = next((tick for tick in _TICKS_S if tick >= wanted), _TICKS_S[-1])
        moment = max(0.0, -(-(self.start - self.origin) // step) * step)
        ticks = []
        while (cell := self.cell(self.origin + moment)) < self.width:
            ticks.append((cell, moment))
            moment += step
        return ticks
