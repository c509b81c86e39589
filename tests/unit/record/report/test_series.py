"""Lines of bounded length that keep every peak."""

from __future__ import annotations

from gpu_dash.record.report.axis import Axis
from gpu_dash.record.report.series import Series, TimeSpan, area_path, line_path, merged

ACROSS = Axis(0.0, 100.0, 0.0, 100.0)
UP = Axis(0.0, 100.0, 100.0, 0.0)


def series(*readings: tuple[float, float], columns: int = 10) -> Series:
    made = Series(TimeSpan(0.0, 100.0, columns))
    for at_s, value in readings:
        made.add(at_s, value)
    return made


def test_a_column_keeps_its_lowest_and_highest_value() -> None:
    made = series(*((number / 1000, 50.0) for number in range(100_000)), (33.3, 99.0), (33.4, 1.0))
    points = list(made.points())
    assert len(points) == 10
    assert points[3] == (3, 1.0, 99.0)
    assert points[4] == (4, 50.0, 50.0)
    assert (made.lowest, made.highest) == (1.0, 99.0)


def test_what_is_not_shown_or_not_offered_is_left_out() -> None:
    made = series((-1.0, 5.0), (101.0, 5.0))
    made.add(50.0, None)
    assert list(made.points()) == []
    made.add(100.0, None, 7.0)
    assert list(made.points()) == [(9, 7.0, 7.0)]


def test_the_mean_is_that_of_the_readings_and_not_of_their_extremes() -> None:
    made = Series(TimeSpan(0.0, 100.0, 10))
    made.add(1.0, 10.0, 90.0)
    made.add(2.0, 20.0, 5.0)
    made.add(11.0, None, 7.0)
    assert list(made.mean().points()) == [(0, 15.0, 15.0)]


def test_a_gap_breaks_the_line() -> None:
    made = series((5.0, 1.0), (15.0, 2.0), (75.0, 3.0), (85.0, 4.0))
    assert [len(run) for run in made.runs()] == [2, 2]
    assert line_path(made, ACROSS, UP).count("M") == 2


def test_short_columns_between_two_readings_are_no_gap() -> None:
    made = series((0.0, 1.0), (4.0, 2.0), (8.0, 3.0), columns=100)
    assert [len(run) for run in made.runs()] == [3]


def test_a_line_has_a_stroke_where_a_column_has_a_range() -> None:
    made = series((5.0, 40.0), (15.0, 20.0), (16.0, 60.0))
    assert line_path(made, ACROSS, UP) == "M5 60L15 80L15 40"


def test_a_single_reading_is_a_dot() -> None:
    assert line_path(series((5.0, 40.0)), ACROSS, UP) == "M5 60L5 60"


def test_an_area_goes_forth_on_the_highest_and_back_on_the_lowest() -> None:
    made = series((5.0, 40.0), (15.0, 20.0), (16.0, 60.0))
    assert area_path(made, ACROSS, UP) == "M5 60L15 40L15 80L5 60Z"


def test_several_series_merge_into_their_range() -> None:
    both = merged([series((5.0, 10.0), (15.0, 20.0)), series((5.0, 30.0))])
    assert list(both.points()) == [(0, 10.0, 30.0), (1, 20.0, 20.0)]
