"""Places and ticks."""

from __future__ import annotations

import pytest

from gpu_dash.record.report.axis import (
    Axis,
    around,
    from_zero,
    linear_ticks,
    log_ticks,
    time_ticks,
)


def test_values_stand_between_the_ends_and_never_beyond() -> None:
    up = Axis(0.0, 200.0, 100.0, 20.0)
    assert [up.place(value) for value in (-50, 0, 50, 200, 900)] == [100, 100, 80, 20, 20]


def test_equal_ratios_are_equally_long_on_a_logarithmic_axis() -> None:
    across = Axis(1.0, 256.0, 0.0, 80.0, is_logarithmic=True)
    assert [across.place(load) for load in (1, 2, 16, 256)] == pytest.approx([0, 10, 40, 80])


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (0.0, 1708.2, [0.0, 500.0, 1000.0, 1500.0]),
        (31.0, 88.0, [40.0, 60.0, 80.0]),
        (-0.4, 0.4, [-0.4, -0.2, 0.0, 0.2, 0.4]),
    ],
)
def test_linear_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert linear_ticks(low, high) == pytest.approx(ticks)


def test_log_ticks_thin_out_over_many_powers() -> None:
    assert log_ticks(0.03, 4.0) == pytest.approx([0.05, 0.1, 0.2, 0.5, 1.0, 2.0])
    assert log_ticks(0.11, 0.19) == pytest.approx([0.12, 0.14, 0.16, 0.18])
    assert log_ticks(0.001, 900.0) == pytest.approx([0.001, 0.01, 0.1, 1.0, 10.0, 100.0])


@pytest.mark.parametrize(
    ("start_s", "end_s", "ticks"),
    [
        (0.0, 127.0, [0, 15, 30, 45, 60, 75, 90, 105, 120]),
        (150.2, 397.0, [180, 210, 240, 270, 300, 330, 360, 390]),
        (0.0, 30 * 86400.0, [n * 3 * 86400 for n in range(11)]),
    ],
)
def test_time_ticks_are_round_moments(start_s: float, end_s: float, ticks: list[float]) -> None:
    assert time_ticks(start_s, end_s) == ticks


def test_a_scale_is_never_flat() -> None:
    assert from_zero([]) == from_zero([0.0, None]) == (0.0, 1.0)
    assert around([None], 10.0) == (0.0, 10.0)
    assert around([50.0, 50.0], 10.0) == (45.0, 55.0)
    low, high = around([20.0, 80.0], 10.0)
    assert low < 20.0
    assert high > 80.0
