"""How long a card throttled: by counters where there are some, else by what was polled."""

from __future__ import annotations

import pytest

from gpu_dash.gpu.backend import ThrottleCounters
from gpu_dash.gpu.throttle_time import ThrottleTime

CAPPED = ("sw_power_cap",)
HOT = ("sw_thermal", "hw_thermal")


def test_polled_reasons_add_up_where_nothing_is_counted() -> None:
    time = ThrottleTime()
    for at, reasons in ((0.0, HOT), (0.1, HOT), (0.2, (*HOT, *CAPPED)), (0.3, ())):
        time.add(at, reasons, None)
    assert time.thermal_s == pytest.approx(0.2)
    assert time.power_s == pytest.approx(0.1)


def test_a_gap_between_samples_is_not_all_throttling() -> None:
    time = ThrottleTime()
    time.add(0.0, HOT, None)
    time.add(30.0, HOT, None)
    assert time.thermal_s == 1.0


def test_counters_go_before_polled_reasons_and_begin_where_they_stand() -> None:
    time = ThrottleTime()
    time.add(0.0, HOT, ThrottleCounters(sw_thermal_s=500.0, hw_thermal_s=0.0, sw_power_cap_s=7.0))
    for tenth in range(1, 10):
        time.add(tenth / 10, HOT, None)
    time.add(1.0, HOT, ThrottleCounters(sw_thermal_s=500.25, hw_thermal_s=0.0, sw_power_cap_s=7.5))
    assert (time.thermal_s, time.power_s) == (0.25, 0.5)


def test_two_reasons_at_once_are_not_counted_twice() -> None:
    time = ThrottleTime()
    time.add(0.0, (), ThrottleCounters(sw_thermal_s=0.0, hw_thermal_s=0.0))
    time.add(1.0, (), ThrottleCounters(sw_thermal_s=0.5, hw_thermal_s=0.75))
    assert time.thermal_s == 0.75


def test_an_older_driver_counts_heat_as_one() -> None:
    time = ThrottleTime()
    time.add(0.0, HOT, ThrottleCounters(thermal_s=3.0))
    time.add(0.5, HOT, None)
    counted = time.add(1.0, HOT, ThrottleCounters(thermal_s=3.25))
    assert time.thermal_s == 0.25
    assert [count.reasons for count in counted.values()] == [("thermal",)]


def test_a_kind_that_is_not_counted_is_polled_beside_one_that_is() -> None:
    time = ThrottleTime()
    time.add(0.0, ("hw_power_brake",), ThrottleCounters(sw_power_cap_s=0.0))
    time.add(0.1, ("hw_power_brake",), None)
    assert time.power_s == pytest.approx(0.1)


def test_a_counter_that_starts_anew_takes_nothing_away() -> None:
    time = ThrottleTime()
    for at, seconds in ((0.0, 10.0), (1.0, 10.5), (2.0, 0.0), (3.0, 0.25)):
        time.add(at, (), ThrottleCounters(hw_thermal_s=seconds))
    assert time.thermal_s == 0.75
