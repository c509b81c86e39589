"""A simulated card heats, is limited and recovers as its model says."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gpu_dash.demo.thermal import Card, CardSpec

COOL = CardSpec(thermal_resistance_celsius_per_watt=0.05)
HOT = CardSpec(thermal_resistance_celsius_per_watt=0.12)
FULL_CLOCK_MHZ = COOL.sm_clock_max_mhz


def run(card: Card, seconds: float, activity: float = 1.0) -> None:
    card.advance(seconds, activity=activity, busy=1.0)


def run_until_slowed(card: Card) -> None:
    """Full load until hardware slowdown steps in."""
    for _ in range(10_000):
        if "hw_thermal" in card.throttle_reasons:
            return
        run(card, 0.1)
    pytest.fail("the card never reached its slowdown threshold")


def test_a_fresh_card_idles_at_its_steady_temperature() -> None:
    card = Card(COOL)
    before = card.temperature_celsius
    run(card, 60.0, activity=0.0)
    assert card.temperature_celsius == pytest.approx(before)
    assert card.power_watts == COOL.idle_power_watts
    assert card.sm_clock_mhz == FULL_CLOCK_MHZ
    assert card.throttle_reasons == ()


@pytest.mark.parametrize("activity", [0.0, 0.1, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("resistance", [0.03, 0.05, 0.07])
def test_a_steady_load_settles_at_ambient_plus_resistance_times_power(
    activity: float, resistance: float
) -> None:
    spec = CardSpec(thermal_resistance_celsius_per_watt=resistance)
    card = Card(spec)
    run(card, 30 * spec.time_constant_s, activity)
    settled = spec.ambient_celsius + resistance * card.power_watts
    assert card.temperature_celsius == pytest.approx(settled, abs=0.01)


def test_after_one_time_constant_a_step_has_done_63_percent_of_its_effect() -> None:
    card = Card(replace(COOL, activity_time_constant_s=1e-6))
    cold = card.temperature_celsius
    run(card, COOL.time_constant_s, activity=0.5)
    rise = card.temperature_celsius - cold
    settled = COOL.ambient_celsius + 0.05 * card.power_watts
    assert rise / (settled - cold) == pytest.approx(0.632, abs=0.005)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("limit_watts", [200.0, 450.0, 700.0])
def test_the_power_cap_holds_whatever_the_load(seed: int, limit_watts: float) -> None:
    card = Card(replace(COOL, power_limit_watts=limit_watts))
    load = random.Random(seed)
    for _ in range(500):
        run(card, load.uniform(0.001, 0.5), activity=load.random())
        assert card.power_watts <= limit_watts
        capped = "sw_power_cap" in card.throttle_reasons
        assert capped == (card.sm_clock_mhz < FULL_CLOCK_MHZ)


def test_a_card_at_its_cap_says_so_and_nothing_of_heat() -> None:
    card = Card(COOL)
    run(card, 60.0)
    assert card.throttle_reasons == ("sw_power_cap",)
    assert 0.9 * FULL_CLOCK_MHZ < card.sm_clock_mhz < FULL_CLOCK_MHZ
    assert card.power_watts == pytest.approx(COOL.power_limit_watts, rel=0.03)
    assert card.throttle_power_s == pytest.approx(60.0, abs=1.0)
    assert card.throttle_thermal_s == 0.0


def test_above_the_operating_temperature_the_clock_gives_way_a_little() -> None:
    card = Card(replace(HOT, thermal_resistance_celsius_per_watt=0.0985, power_limit_watts=900.0))
    run(card, 200.0, activity=0.75)
    assert 87.0 < card.temperature_celsius < 89.0
    assert card.throttle_reasons == ("sw_thermal",)
    assert 0.95 * FULL_CLOCK_MHZ < card.sm_clock_mhz < FULL_CLOCK_MHZ


def test_at_the_slowdown_threshold_the_clock_is_cut_in_half() -> None:
    card = Card(HOT)
    run_until_slowed(card)
    assert card.sm_clock_mhz == FULL_CLOCK_MHZ / 2
    assert set(card.throttle_reasons) == {"hw_slowdown", "hw_thermal", "sw_thermal"}
    assert card.power_watts < 300


def test_slowdown_ends_only_after_the_hysteresis() -> None:
    card = Card(HOT)
    run_until_slowed(card)
    released_at = HOT.slowdown_temperature_celsius - HOT.slowdown_hysteresis_celsius
    while "hw_thermal" in card.throttle_reasons:
        below_before = card.temperature_celsius < released_at - 0.5
        run(card, 0.1)
        assert not below_before, "it was cool enough and stayed slow"
    assert card.temperature_celsius < released_at
    assert card.throttle_reasons == ("sw_thermal",)


def test_the_clock_comes_back_step_by_step_and_then_the_reason_goes() -> None:
    card = Card(HOT)
    run_until_slowed(card)
    run(card, 30.0, activity=0.0)
    while_slow = card.throttle_thermal_s
    assert card.sm_clock_mhz == FULL_CLOCK_MHZ
    assert card.throttle_reasons == ()
    run(card, 30.0, activity=0.0)
    assert card.throttle_thermal_s == while_slow


def test_recovery_is_no_faster_than_its_rate() -> None:
    card = Card(HOT)
    run_until_slowed(card)
    while "hw_thermal" in card.throttle_reasons:
        run(card, 0.1, activity=0.0)
    at_release = card.sm_clock_mhz
    run(card, 5.0, activity=0.0)
    gained = card.sm_clock_mhz - at_release
    assert gained == pytest.approx(5 * HOT.clock_recovery_mhz_per_s, abs=HOT.sm_clock_step_mhz)


def test_heat_never_reaches_the_shutdown_temperature() -> None:
    card = Card(HOT)
    for _ in range(3000):
        run(card, 0.1)
        assert card.temperature_celsius < HOT.slowdown_temperature_celsius + 1


def test_energy_is_power_by_time() -> None:
    card = Card(COOL)
    spent = 0.0
    for activity in (0.0, 1.0, 0.3):
        for _ in range(100):
            run(card, 0.1, activity)
            spent += card.power_watts * 0.1
    assert card.energy_joules == pytest.approx(spent)


def test_it_does_not_matter_in_how_many_pieces_time_comes() -> None:
    whole, pieces = Card(HOT), Card(HOT)
    run(whole, 40.0)
    for _ in range(400):
        run(pieces, 0.1)
    assert whole.temperature_celsius == pytest.approx(pieces.temperature_celsius, abs=0.5)
    assert whole.throttle_thermal_s == pytest.approx(pieces.throttle_thermal_s, abs=0.5)


def test_a_hastened_card_is_as_hot_in_a_quarter_of_the_time() -> None:
    slow, fast = Card(COOL), Card(COOL.hastened(4.0))
    run(slow, 20.0, activity=0.6)
    run(fast, 5.0, activity=0.6)
    assert fast.temperature_celsius == pytest.approx(slow.temperature_celsius, abs=1.0)


def test_utilization_counts_waiting_as_busy() -> None:
    card = Card(COOL)
    card.advance(5.0, activity=0.05, busy=1.0)
    assert card.utilization_percent == 100
    assert card.power_watts < 150
    card.advance(5.0, activity=0.0, busy=0.0)
    assert card.utilization_percent == 0
