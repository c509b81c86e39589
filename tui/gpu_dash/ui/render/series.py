"""History points gathered into the columns of a time axis, a little more at each frame."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Generic, Protocol, TypeVar

from gpu_dash.ui.render.timeaxis import TimeAxis

GAP_S = 3.0
"""Two readings further apart than this are not joined: there were no data between them."""


class Point(Protocol):
    """Anything of the store's history."""

    at: float


P = TypeVar("P", bound=Point)


class Gather(Enum):
    """What a column shows when several points fall on it."""

    HIGHEST = auto()
    LOWEST = auto()
    MEAN = auto()


class Series(Generic[P]):
    """One value per column of dots; ``None`` where there are no data.

    All points but the newest are final, so each is looked at once per page of the axis: an hour
    of sixteen cards costs no more per frame than two minutes of one.

    Args:
        value: what of a point is shown; points where it is ``None`` are passed over.
        gather: what a column with several points shows.
        gap_s: seconds without a value from which the line is broken.
    """

    def __init__(
        self, value: Callable[[P], float | None], gather: Gather, *, gap_s: float = GAP_S
    ) -> None:
        self._value = value
        self._gather = gather
        self._gap_s = gap_s
        self._axis: TimeAxis | None = None
        self._source: Sequence[P] | None = None
        self._columns: list[float | None] = []
        self._counts: list[int] = []
        self._done_at = 0.0
        self._before: tuple[float, float, int] | None = None

    def on(self, axis: TimeAxis, points: Sequence[P]) -> list[float | None]:
        """The columns for this axis, with all points up to now."""
        if axis != self._axis or points is not self._source:
            self._restart(axis, points)
        if not points:
            return list(self._columns)
        first = bisect_right(points, self._done_at, key=_at)
        for index in range(first, len(points) - 1):
            self._take(axis, points[index], self._columns, self._counts)
            self._done_at = points[index].at
        columns, counts, before = list(self._columns), list(self._counts), self._before
        self._take(axis, points[-1], columns, counts)
        self._before = before
        return columns

    def _restart(self, axis: TimeAxis, points: Sequence[P]) -> None:
        self._axis = axis
        self._source = points
        self._columns = [None] * axis.dots
        self._counts = [0] * axis.dots
        self._before = None
        first = bisect_left(points, axis.start - self._gap_s, key=_at)
        self._done_at = points[first - 1].at if first else float("-inf")

    def _take(
        self, axis: TimeAxis, point: P, columns: list[float | None], counts: list[int]
    ) -> None:
        value = self._value(point)
        if value is None:
            return
        dot = axis.dot(point.at)
        if self._before is not None:
            at, earlier, earlier_dot = self._before
            if point.at - at <= max(self._gap_s, 2.5 * axis.seconds_per_dot):
                for between in range(max(0, earlier_dot + 1), min(dot, len(columns))):
                    share = (between - earlier_dot) / (dot - earlier_dot)
                    columns[between] = earlier + (value - earlier) * share
        self._before = (point.at, value, dot)
        if 0 <= dot < len(columns):
            columns[dot] = self._joined(columns[dot], value, counts[dot])
            counts[dot] += 1

    def _joined(self, there: float | None, value: float, count: int) -> float:
        if there is None or count == 0:
            return value
        if self._gather is Gather.HIGHEST:
            return max(there, value)
        if self._gather is Gather.LOWEST:
            return min(there, value)
        return there + (value - there) / (count + 1)


def _at(point: Point) -> float:
    return point.at
