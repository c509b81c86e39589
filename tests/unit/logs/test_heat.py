"""What the cards' readings make of a finding's first check."""

from __future__ import annotations

import pytest

from gpu_dash.logs.heat import CardHeat, advise, seconds_before
from gpu_dash.model.events import Finding
from gpu_dash.model.log import Severity

COOL = CardHeat(gpu=0, peak_temperature_celsius=61, headroom_celsius=26)
COOL_2 = CardHeat(gpu=2, peak_temperature_celsius=62, headroom_celsius=25)
HOT = CardHeat(
    gpu=2,
    peak_temperature_celsius=94,
    thermal_reasons=("hw_thermal",),
    lowest_sm_clock_mhz=1170,
    sm_clock_max_mhz=1980,
)
NEAR = CardHeat(gpu=1, peak_temperature_celsius=85, headroom_celsius=2)


def finding(kind: str, message: str = "", subject: str = "rank:2") -> Finding:
    return Finding(
        at=0.0,
        kind=kind,
        severity=Severity.CRITICAL,
        source="log",
        subject=subject,
        message=message,
        first_check="as it was",
        checks=("next",),
    )


def test_a_time_out_beside_a_throttled_card_says_temperature_first_with_its_reading() -> None:
    told = advise(finding("nccl_timeout"), (COOL, HOT))

    assert told.first_check.startswith("temperature first: GPU 2: 94 °C, throttled (hw_thermal), ")
    assert "1170 of 1980 MHz" in told.first_check
    assert "GPU 0" not in told.first_check
    assert told.checks == ("as it was", "next")


def test_a_time_out_beside_cool_cards_says_so_and_the_next_check() -> None:
    told = advise(finding("nccl_timeout"), (COOL, COOL_2))

    assert told.first_check.startswith("XID in the kernel log of GPU 2 (temperatures are normal")
    assert "GPU 2: 62 °C" in told.first_check


@pytest.mark.parametrize("kind", ["worker_died", "gpu_lost"])
def test_heat_comes_first_where_hardware_failed_and_coolness_proves_nothing(kind: str) -> None:
    assert advise(finding(kind), (NEAR,)).first_check.startswith("temperature first: GPU 1: 85 °C")
    assert advise(finding(kind), (COOL,)) == finding(kind)


@pytest.mark.parametrize("kind", ["oom_load", "bad_flag", "client_auth"])
def test_heat_has_nothing_to_do_with_it(kind: str) -> None:
    assert advise(finding(kind), (HOT,)) == finding(kind)
    assert seconds_before(finding(kind)) is None


def test_without_readings_nothing_is_claimed() -> None:
    assert advise(finding("nccl_timeout"), ()) == finding("nccl_timeout")


@pytest.mark.parametrize(
    ("kind", "message", "seconds"),
    [
        ("nccl_timeout", "ran for 1800270 milliseconds before timing out", 1860.27),
        ("nccl_timeout", "watchdog got stuck for 480 seconds without", 540),
        ("nccl_timeout", "Heartbeat monitor timed out!", 660),
        ("stall", "No available shared memory broadcast block found in 60 seconds.", 120),
        ("gpu_lost", "GPU is lost", 60),
    ],
)
def test_readings_matter_for_as_long_as_the_line_says_it_waited(
    kind: str, message: str, seconds: float
) -> None:
    assert seconds_before(finding(kind, message)) == pytest.approx(seconds)
