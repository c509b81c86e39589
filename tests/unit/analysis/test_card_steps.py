"""Throttle seconds and clock deficit of each card in each step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_dash.analysis.card_steps import CardReading, Window, card_steps

FIRST = Window(step=1, concurrency=8, opens_s=10.0, closes_s=20.0)
SECOND = Window(step=2, concurrency=16, opens_s=25.0, closes_s=35.0)


def reading(at_s: float, gpu: int = 0) -> CardReading:
    """A busy card at nine tenths of its clock, whose totals grow by a tenth of the time."""
    return CardReading(
        at_s=at_s,
        gpu=gpu,
        sm_clock_mhz=1800.0,
        sm_clock_max_mhz=2000.0,
        utilization_percent=99.0,
        temperature_celsius=60.0,
        throttle_thermal_s=at_s / 10,
        throttle_power_s=at_s / 2,
    )


def test_only_what_lies_in_a_window_counts() -> None:
    readings = [reading(at) for at in range(5, 40)]
    readings[2] = replace(readings[2], temperature_celsius=99.0, sm_clock_mhz=1.0)  # second 7
    readings[10] = replace(readings[10], temperature_celsius=71.0, lowest_sm_clock_mhz=300.0)
    first, second = card_steps([FIRST, SECOND], readings)
    assert (first.step, first.concurrency, first.gpu) == (1, 8, 0)
    assert first.throttle_thermal_s == pytest.approx(1.0)
    assert first.throttle_power_s == pytest.approx(5.0)
    assert first.clock_deficit == pytest.approx(0.1)
    assert (first.min_sm_clock_mhz, first.peak_temperature_celsius) == (300.0, 71.0)
    assert (second.step, second.peak_temperature_celsius) == (2, 60.0)


def test_every_card_has_its_own_account() -> None:
    readings = [reading(at, gpu) for at in range(9, 21) for gpu in (0, 1)]
    readings[6] = replace(readings[6], sm_clock_mhz=1000.0)  # GPU 0, second 12
    found = card_steps([FIRST], readings)
    assert [card.gpu for card in found] == [0, 1]
    assert found[0].clock_deficit == pytest.approx((9 * 0.1 + 0.5) / 10)
    assert found[1].clock_deficit == pytest.approx(0.1)


def test_a_card_at_rest_lacks_no_clock() -> None:
    idle = [
        replace(reading(at), sm_clock_mhz=345.0, utilization_percent=0.0) for at in range(9, 21)
    ]
    (card,) = card_steps([FIRST], idle)
    assert card.clock_deficit is None
    assert card.min_sm_clock_mhz == 345.0


def test_what_a_card_does_not_tell_is_none_and_a_total_that_fell_is_nothing() -> None:
    silent = [CardReading(at, 0, None, None, None, None, None, None) for at in (9.0, 11.0, 12.0)]
    (card,) = card_steps([FIRST], silent)
    assert card.throttle_thermal_s is card.clock_deficit is card.peak_temperature_celsius is None
    fallen = [reading(9.0), replace(reading(15.0), throttle_thermal_s=0.0)]
    (card,) = card_steps([FIRST], fallen)
    assert card.throttle_thermal_s == 0.0


def test_a_window_without_readings_has_no_line() -> None:
    assert card_steps([FIRST, SECOND], [reading(30.0)])[0].step == 2
    assert card_steps([], [reading(1.0)]) == []
