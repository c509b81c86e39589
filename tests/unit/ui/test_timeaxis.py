"""One axis for all charts: it moves by pages and is labelled in session time."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gpu_dash.ui.render.timeaxis import WINDOWS_S, TimeAxis


def axis_at(now: float, *, window_s: float = 120.0, width: int = 60) -> TimeAxis:
    return TimeAxis.around(now, window_s, width, origin=1000.0, earliest=0.0)


def test_it_stands_still_within_a_page_and_moves_by_a_page() -> None:
    starts = [axis_at(1200.0 + second).start for second in range(11)]

    assert starts == [1090.0] * 10 + [1100.0]


@pytest.mark.parametrize("window_s", WINDOWS_S)
@pytest.mark.parametrize("now", [1000.0, 1003.7, 1500.0, 99_999.9])
def test_now_is_always_on_it(window_s: float, now: float) -> None:
    axis = axis_at(now, window_s=window_s)

    assert 0 <= axis.cell(now) < axis.width
    assert 0 <= axis.dot(now) < axis.dots


def test_young_data_begin_at_the_left() -> None:
    axis = TimeAxis.around(1004.0, 120.0, 60, origin=1000.0, earliest=1000.5)

    assert axis.start == 1000.0
    assert axis.cell(1000.5) == 0


def test_what_is_before_it_has_a_negative_column() -> None:
    axis = axis_at(1200.0)

    assert axis.cell(axis.start - 0.1) < 0
    assert axis.dot(axis.start - 0.1) < 0
    assert axis.cell(axis.start + axis.window_s) == axis.width


def test_ticks_are_round_seconds_of_the_session_and_do_not_touch() -> None:
    axis = axis_at(1200.0)

    ticks = axis.ticks()

    assert [moment for _, moment in ticks] == [90.0, 120.0, 150.0, 180.0]
    assert all(b - a >= 12 for (a, _), (b, _) in pairwise(ticks))
    assert all(axis.cell(1000.0 + moment) == cell for cell, moment in ticks)


def test_no_time_before_the_session_is_written() -> None:
    """Readings of the cards can be older than the session."""
    axis = TimeAxis.around(1005.0, 120.0, 60, origin=1000.0, earliest=985.0)

    assert axis.start < 1000.0
    assert [moment for _, moment in axis.ticks()] == [0.0, 30.0, 60.0, 90.0]
    assert axis.span_text() == "to 1:40"
