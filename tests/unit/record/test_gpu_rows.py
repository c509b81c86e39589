"""One row a second with its extremes, and ten a second around a throttle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import GpuInfo, GpuSample, ThrottleKind
from gpu_dash.record.columns import GPU
from gpu_dash.record.gpu_rows import FastRows, GpuSeconds
from tests.unit.record.recorded import ANCHOR, CARDS, on

CARD_BY_INDEX = {info.gpu: info for info in CARDS}


def sweep(second: float, gpu: int = 0, **fields: Any) -> ev.GpuSamples:
    return ev.GpuSamples(at=on(second), samples=(GpuSample(gpu=gpu, **fields),))


def named(rows: Iterable[list[str]]) -> list[dict[str, str]]:
    return [dict(zip(GPU, row, strict=True)) for row in rows]


def test_a_row_has_the_newest_values_and_the_extremes_of_its_second() -> None:
    seconds = GpuSeconds(ANCHOR, CARD_BY_INDEX)
    sweeps = [
        sweep(7.0, temperature_celsius=80.0, power_watts=300.0, sm_clock_mhz=1900.0),
        sweep(
            7.1,
            temperature_celsius=90.5,
            power_watts=885.0,
            sm_clock_mhz=1170.0,
            throttle_reasons=("sw_power_cap", "hw_thermal"),
        ),
        sweep(
            7.9,
            temperature_celsius=85.0,
            power_watts=400.0,
            sm_clock_mhz=1800.0,
            throttle_reasons=("sw_thermal", "sw_power_cap"),
        ),
    ]
    assert not [row for event in sweeps for row in seconds.add(event)]
    (row,) = named(seconds.add(sweep(8.0, temperature_celsius=50.0)))
    wanted = {
        "time_s": "7.900",
        "time_utc": "2027-01-15T08:00:08.400Z",
        "gpu": "0",
        "uuid": "GPU-00000",
        "name": "Acme T100",
        "temperature_celsius": "85",
        "slowdown_temperature_celsius": "89",
        "power_watts": "400",
        "sm_clock_mhz": "1800",
        "sm_clock_max_mhz": "1980",
        "memory_total_bytes": str(150 * 2**30),
        "temperature_max_celsius": "90.5",
        "power_max_watts": "885",
        "sm_clock_min_mhz": "1170",
        "sm_clock_mean_mhz": "1623.3",
        "throttle_reasons": "sw_power_cap+hw_thermal+sw_thermal",
    }
    assert {name: cell for name, cell in row.items() if cell} == wanted
    (rest,) = named(seconds.close_all())
    assert (rest["time_s"], rest["temperature_celsius"]) == ("8.000", "50")


def test_one_row_per_card_and_second() -> None:
    seconds = GpuSeconds(ANCHOR, {})
    rows: list[list[str]] = []
    for tenth in range(100):
        for gpu in (0, 1):
            rows += seconds.add(sweep(tenth / 10, gpu, temperature_celsius=1.0))
    rows += seconds.close_all()
    places = [(row["gpu"], int(float(row["time_s"]))) for row in named(rows)]
    assert sorted(places) == [(str(gpu), second) for gpu in (0, 1) for second in range(10)]


def test_a_card_that_falls_silent_gets_its_last_row_all_the_same() -> None:
    seconds = GpuSeconds(ANCHOR, {})
    assert not list(seconds.add(sweep(3.2, temperature_celsius=1.0)))
    assert not list(seconds.close_until(on(4.9)))
    assert [row["time_s"] for row in named(seconds.close_until(on(5.0)))] == ["3.200"]
    assert not list(seconds.close_until(on(9.0)))


def test_a_sample_behind_its_time_widens_the_next_row_and_adds_none() -> None:
    seconds = GpuSeconds(ANCHOR, {})
    list(seconds.add(sweep(3.2, temperature_celsius=50.0)))
    list(seconds.close_until(on(5.0)))
    rows = list(seconds.add(sweep(3.9, temperature_celsius=99.0)))
    rows += seconds.add(sweep(4.5, temperature_celsius=51.0))
    rows += seconds.close_all()
    assert [row["temperature_max_celsius"] for row in named(rows)] == ["99"]


def test_what_a_card_does_not_offer_is_empty() -> None:
    seconds = GpuSeconds(ANCHOR, {0: GpuInfo(gpu=0, name="=evil()")})
    list(seconds.add(sweep(0.0)))
    (row,) = named(seconds.close_all())
    assert {name for name, cell in row.items() if cell} == {"time_s", "time_utc", "gpu", "name"}
    assert row["name"] == "'=evil()"


# -- around a throttle -------------------------------------------------------------------------


def began(second: float, gpu: int = 0, kind: ThrottleKind = ThrottleKind.THERMAL) -> ev.Event:
    return ev.ThrottleBegan(at=on(second), gpu=gpu, kind=kind, reasons=())


def ended(second: float, gpu: int = 0, kind: ThrottleKind = ThrottleKind.THERMAL) -> ev.Event:
    return ev.ThrottleEnded(at=on(second), gpu=gpu, kind=kind, began_at=on(0))


def play(until: float, *edges: ev.Event, every_s: float = 0.1, gpus: int = 1) -> list[str]:
    """Times of the fast rows of card 0, with samples at the given rate and the edges between."""
    fast = FastRows(ANCHOR, {})
    sweeps: list[ev.Event] = [
        ev.GpuSamples(
            at=on(index * every_s), samples=tuple(GpuSample(gpu=gpu) for gpu in range(gpus))
        )
        for index in range(round(until / every_s))
    ]
    rows: list[list[str]] = []
    for event in sorted([*sweeps, *edges], key=lambda event: event.at):
        match event:
            case ev.GpuSamples():
                rows += fast.add(event)
            case ev.ThrottleBegan():
                rows += fast.begin(event)
            case ev.ThrottleEnded():
                fast.end(event)
            case _:
                pass
    return [row["time_s"] for row in named(rows) if row["gpu"] == "0"]


def tenths(first: float, last: float) -> list[str]:
    return [f"{tenth / 10:.3f}" for tenth in range(round(first * 10), round(last * 10) + 1)]


def test_rows_from_ten_seconds_before_to_ten_seconds_after() -> None:
    assert play(60, began(30.05), ended(33.05)) == tenths(20.1, 43.0)


def test_no_throttle_no_rows() -> None:
    assert play(30) == []


def test_only_the_card_that_throttles() -> None:
    assert play(60, began(30.05, gpu=1), ended(33.05, gpu=1), gpus=2) == []


def test_a_power_cap_is_no_reason() -> None:
    cap = ThrottleKind.POWER_CAP
    assert play(60, began(30.05, kind=cap), ended(33.05, kind=cap)) == []
    mixed = play(60, began(30.05), ended(31.05, kind=cap), ended(33.05))
    assert mixed == tenths(20.1, 43.0)


def test_two_throttles_that_touch_are_one_stretch_without_a_row_twice() -> None:
    assert play(80, began(30.05), ended(33.05), began(48.05), ended(50.05)) == tenths(20.1, 60.0)


def test_it_goes_on_until_the_last_reason_is_over() -> None:
    brake = ThrottleKind.POWER_BRAKE
    edges = [began(30.05), began(31.05, kind=brake), ended(32.05), ended(40.05, kind=brake)]
    assert play(70, *edges) == tenths(20.1, 50.0)


@pytest.mark.parametrize("every_s", [0.02, 0.05])
def test_a_faster_source_is_thinned_to_ten_rows_a_second(every_s: float) -> None:
    times = play(60, began(30.05), ended(33.05), every_s=every_s)
    assert 225 <= len(times) <= 290
    assert (float(times[0]), float(times[-1])) == pytest.approx((20.1, 43.0), abs=0.1)


def test_a_slower_source_keeps_its_own_rate() -> None:
    times = play(60, began(30.05), ended(33.05), every_s=0.5)
    assert len(times) == 46
