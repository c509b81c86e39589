"""Points become columns; what was gathered before gives the same as gathering anew."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from gpu_dash.ui.render.series import Gather, Series
from gpu_dash.ui.render.timeaxis import TimeAxis


@dataclass
class Point:
    at: float
    value: float | None


AXIS = TimeAxis(start=0.0, window_s=20.0, width=10, origin=0.0)
"""One second per column of dots."""


def series(gather: Gather) -> Series[Point]:
    return Series(lambda point: point.value, gather)


@pytest.mark.parametrize(
    ("gather", "column"), [(Gather.HIGHEST, 6.0), (Gather.LOWEST, 2.0), (Gather.MEAN, 4.0)]
)
def test_points_of_one_column_are_gathered(gather: Gather, column: float) -> None:
    points = [Point(3.1, 4.0), Point(3.5, 2.0), Point(3.9, 6.0)]

    assert series(gather).on(AXIS, points)[3] == pytest.approx(column)


def test_neighbours_are_joined() -> None:
    columns = series(Gather.MEAN).on(AXIS, [Point(2.5, 1.0), Point(4.5, 3.0)])

    assert columns[2:5] == [1.0, 2.0, 3.0]


def test_a_gap_stays_a_gap() -> None:
    columns = series(Gather.MEAN).on(AXIS, [Point(2.5, 1.0), Point(9.5, 3.0)])

    assert columns[2] == 1.0
    assert columns[3:9] == [None] * 6
    assert columns[9] == 3.0


def test_a_point_without_a_value_is_passed_over() -> None:
    points = [Point(2.5, 1.0), Point(3.5, None), Point(4.5, 3.0)]

    assert series(Gather.MEAN).on(AXIS, points)[2:5] == [1.0, 2.0, 3.0]


def test_points_without_a_value_do_not_bridge_a_gap() -> None:
    points = [Point(2.5, 1.0), *(Point(at + 0.5, None) for at in range(3, 9)), Point(9.5, 3.0)]

    assert series(Gather.MEAN).on(AXIS, points)[3:9] == [None] * 6


def test_how_wide_a_gap_is_can_be_said() -> None:
    patient = Series[Point](lambda point: point.value, Gather.MEAN, gap_s=10.0)

    assert None not in patient.on(AXIS, [Point(2.5, 1.0), Point(9.5, 8.0)])[2:10]


def test_points_outside_of_the_axis_are_left_out() -> None:
    columns = series(Gather.MEAN).on(AXIS, [Point(-9.0, 1.0), Point(25.0, 2.0)])

    assert columns == [None] * 20


@pytest.mark.parametrize("gather", list(Gather))
def test_adding_points_one_by_one_gives_what_all_at_once_give(gather: Gather) -> None:
    chance = random.Random(7)
    points: list[Point] = []
    growing = series(gather)
    at = -5.0
    while at < 19.0:
        at += chance.choice((0.2, 0.5, 1.0, 6.0))
        points.append(Point(at, chance.choice((None, chance.random(), chance.random()))))
        columns = growing.on(AXIS, points)
        assert columns == pytest.approx(series(gather).on(AXIS, points))


def test_the_newest_point_may_still_change() -> None:
    points = [Point(3.5, 1.0)]
    growing = series(Gather.HIGHEST)
    growing.on(AXIS, points)

    points[-1].value = 9.0

    assert growing.on(AXIS, points)[3] == 9.0


@pytest.mark.parametrize(
    "change",
    [
        lambda points: (AXIS, list(points)),
        lambda points: (TimeAxis(start=1.0, window_s=20.0, width=10, origin=0.0), points),
    ],
    ids=["another store", "the next page"],
)
def test_another_source_or_page_starts_anew(
    change: Callable[[list[Point]], tuple[TimeAxis, list[Point]]],
) -> None:
    points = [Point(float(second), float(second)) for second in range(5)]
    growing = series(Gather.MEAN)
    growing.on(AXIS, points)

    axis, source = change(points)

    assert growing.on(axis, source) == series(Gather.MEAN).on(axis, source)


def test_forgotten_old_points_do_not_disturb() -> None:
    points = [Point(float(second), float(second)) for second in range(10)]
    growing = series(Gather.MEAN)
    before = growing.on(AXIS, points)
    del points[:4]
    points.append(Point(10.0, 10.0))

    after = growing.on(AXIS, points)

    assert after[:10] == before[:10]
    assert after[10] == 10.0
