"""A series of any length as a line with a bounded number of points.

A picture has some hundred columns. Of each column the lowest and the highest value are kept, so
that no peak is lost, however long the session was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpu_dash.model.offered import highest, lowest
from gpu_dash.record.report.axis import Axis
from gpu_dash.record.report.markup import pixels

COLUMNS = 480
GAP_S = 5.0
"""Readings further apart than this, and than two columns, are not joined: there were none
between."""


@dataclass(frozen=True)
class TimeSpan:
    """The stretch of the session that the pictures show, in columns."""

    start_s: float
    end_s: float
    columns: int = COLUMNS

    @property
    def column_s(self) -> float:
        """Seconds of one column."""
        return (self.end_s - self.start_s) / self.columns

    def column(self, at_s: float) -> int | None:
        """The column of a moment; ``None`` if it is not shown."""
        if not self.start_s <= at_s <= self.end_s:
            return None
        return min(int((at_s - self.start_s) / self.column_s), self.columns - 1)

    def middle_s(self, column: int) -> float:
        """The moment in a column's middle."""
        return self.start_s + (column + 0.5) * self.column_s


class Series:
    """Lowest and highest value per column, folded reading by reading, and the mean reading."""

    def __init__(self, span: TimeSpan) -> None:
        self.span = span
        self._lows: list[float | None] = [None] * span.columns
        self._highs: list[float | None] = [None] * span.columns
        self._sums = [0.0] * span.columns
        self._counts = [0] * span.columns

    def add(self, at_s: float, reading: float | None, *extremes: float | None) -> None:
        """Take a reading, and the extremes around it where there are some."""
        column = self.span.column(at_s)
        if column is None:
            return
        if reading is not None:
            self._sums[column] += reading
            self._counts[column] += 1
        for value in (reading, *extremes):
            if value is None:
                continue
            low, high = self._lows[column], self._highs[column]
            self._lows[column] = value if low is None or value < low else low
            self._highs[column] = value if high is None or value > high else high

    @property
    def lowest(self) -> float | None:
        """Over all that is shown."""
        return lowest(self._lows)

    @property
    def highest(self) -> float | None:
        """Over all that is shown."""
        return highest(self._highs)

    def mean(self) -> Series:
        """The mean reading of each column."""
        means = Series(self.span)
        for column, (total, count) in enumerate(zip(self._sums, self._counts, strict=True)):
            if count:
                means.add(self.span.middle_s(column), total / count)
        return means

    def points(self) -> Iterator[tuple[int, float, float]]:
        """The columns that have data: number, lowest, highest."""
        for column, (low, high) in enumerate(zip(self._lows, self._highs, strict=True)):
            if low is not None and high is not None:
                yield column, low, high

    def runs(self) -> Iterator[list[tuple[int, float, float]]]:
        """The points in stretches without a gap."""
        widest = max(GAP_S / self.span.column_s, 2.0)
        run: list[tuple[int, float, float]] = []
        for point in self.points():
            if run and point[0] - run[-1][0] > widest:
                yield run
                run = []
            run.append(point)
        if run:
            yield run


def merged(series: Sequence[Series]) -> Series:
    """The lowest and highest of several series over the same columns."""
    both = Series(series[0].span)
    for one in series:
        for column, low, high in one.points():
            both.add(one.span.middle_s(column), None, low, high)
    return both


def line_path(series: Series, across: Axis, up: Axis) -> str:
    """The ``d`` of a line; a column with a range is a vertical stroke in it."""
    parts = []
    for run in series.runs():
        places = []
        for column, low, high in run:
            x = pixels(across.place(series.span.middle_s(column)))
            bottom, top = pixels(up.place(low)), pixels(up.place(high))
            places.append(f"{x} {bottom}")
            if top != bottom:
                places.append(f"{x} {top}")
        if len(places) == 1:
            places *= 2  # a stroke of no length shows as a dot
        parts.append("M" + "L".join(places))
    return "".join(parts)


def area_path(series: Series, across: Axis, up: Axis) -> str:
    """The ``d`` of the area between the lowest and the highest values."""
    parts = []
    for run in series.runs():
        forth = [(column, high) for column, _, high in run]
        back = [(column, low) for column, low, _ in reversed(run)]
        places = [
            f"{pixels(across.place(series.span.middle_s(column)))} {pixels(up.place(value))}"
            for column, value in (*forth, *back)
        ]
        parts.append("M" + "L".join(places) + "Z")
    return "".join(parts)
