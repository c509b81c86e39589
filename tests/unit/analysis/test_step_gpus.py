"""What the cards did in a window, whenever its edges are told."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_dash.analysis.step_gpus import LATE_S, StepGpus, StepGpuWindow
from gpu_dash.model.events import GpuSamples
from gpu_dash.model.gpu import GpuSample


def sweep(at: float, *cards: dict[str, Any]) -> GpuSamples:
    return GpuSamples(
        at=at, samples=tuple(GpuSample(gpu=gpu, **card) for gpu, card in enumerate(cards))
    )


def card(at: float, **fields: Any) -> dict[str, Any]:
    """100 W, so that energy is a hundred times the time."""
    usual: dict[str, Any] = {
        "temperature_celsius": 50.0,
        "sm_clock_mhz": 1900.0,
        "power_watts": 100.0,
        "energy_joules": 7_000 + 100 * at,
        "memory_used_bytes": 10,
        "throttle_thermal_s": 3.0,
    }
    return {**usual, **fields}


def every_tenth(first: float, last: float) -> list[float]:
    return [round(first + index / 10, 1) for index in range(round((last - first) * 10) + 1)]


@pytest.mark.parametrize("late_s", [0.0, 0.5, LATE_S - 0.2])
def test_only_what_happened_in_the_window_counts_however_late_its_edges_are_told(
    late_s: float,
) -> None:
    window = StepGpuWindow()
    hot = {20.0: 90.0, 25.0: 71.0, 31.0: 95.0}
    result = None
    for at in every_tenth(18, 35):
        window.add(sweep(at, card(at, temperature_celsius=hot.get(at, 50.0))))
        if at == round(21.0 + late_s, 1):
            window.begin(21.0)
        if at == round(30.0 + late_s, 1):
            result = window.end(30.0)
    assert result is not None
    assert result.peak_temperature_celsius == 71.0
    assert result.energy_joules == pytest.approx(900.0)
    assert result.throttle_thermal_s == 0.0


@pytest.mark.parametrize(("opens", "closes"), [(21.0, 31.0), (21.9, 31.0), (21.0, 30.9)])
def test_a_counter_that_is_read_once_a_second_gives_the_energy_of_the_window(
    opens: float, closes: float
) -> None:
    window = StepGpuWindow()
    for at in every_tenth(18, closes):
        if at == opens:
            window.begin(opens)
        read_at = float(int(at))
        window.add(sweep(at, card(read_at, energy_age_s=round(at - read_at, 1) or None)))
    result = window.end(closes)
    assert result is not None
    assert result.energy_joules == pytest.approx(100 * (closes - opens))


def test_extremes_and_sums_over_the_cards() -> None:
    window = StepGpuWindow()
    window.begin(0.0)
    window.add(
        sweep(1.0, card(1, throttle_thermal_s=5.0), card(1, throttle_thermal_s=1.0, sm_clock_mhz=7))
    )
    window.add(
        sweep(
            2.0,
            card(2, throttle_thermal_s=6.5, memory_used_bytes=30, power_watts=400.0),
            card(2, throttle_thermal_s=1.5, memory_used_bytes=20, power_watts=300.0),
        )
    )
    assert window.end(3.0) == StepGpus(
        peak_temperature_celsius=50.0,
        min_sm_clock_mhz=7,
        peak_memory_used_bytes=30,
        peak_total_power_watts=700.0,
        throttle_thermal_s=2.0,
        energy_joules=200.0,
    )


def test_only_the_servers_cards_count() -> None:
    window = StepGpuWindow()
    window.begin(0.0, gpus=(1,))
    for at in (1.0, 2.0):
        window.add(
            sweep(at, card(at, temperature_celsius=99.0), card(at, temperature_celsius=60.0))
        )
    result = window.end(3.0)
    assert result is not None
    assert result.peak_temperature_celsius == 60.0
    assert result.peak_total_power_watts == 100.0
    assert result.energy_joules == pytest.approx(100.0)


def test_a_counter_that_starts_again_loses_only_the_gap() -> None:
    window = StepGpuWindow()
    window.add(sweep(0.5, card(0, throttle_thermal_s=9.0)))
    window.begin(1.0)
    for at, seconds in ((1.5, 9.5), (2.0, 0.0), (2.5, 0.25)):
        window.add(sweep(at, card(at, throttle_thermal_s=seconds)))
    result = window.end(3.0)
    assert result is not None
    assert result.throttle_thermal_s == pytest.approx(0.75)


def test_a_window_that_was_closed_early_takes_nothing_while_its_requests_end() -> None:
    window = StepGpuWindow()
    window.begin(0.0)
    window.add(sweep(1.0, card(1.0)))
    window.close(2.0)
    for at in every_tenth(2.1, 9.0):
        window.add(sweep(at, card(at, temperature_celsius=99.0)))
    result = window.end(2.0)
    assert result is not None
    assert result.peak_temperature_celsius == 50.0


def test_a_sweep_from_before_the_window_that_comes_late_is_only_where_the_counters_stood() -> None:
    window = StepGpuWindow()
    window.begin(5.0)
    for at in every_tenth(4.0, 7.0):
        window.add(sweep(at, card(at, temperature_celsius=99.0 if at <= 5 else 50.0)))
    result = window.end(7.0)
    assert result is not None
    assert result.peak_temperature_celsius == 50.0
    assert result.energy_joules == pytest.approx(200.0)


def test_the_next_window_begins_empty() -> None:
    window = StepGpuWindow()
    window.begin(0.0)
    window.add(sweep(1.0, card(1.0, temperature_celsius=99.0, sm_clock_mhz=1.0)))
    window.end(2.0)
    window.begin(3.0)
    window.add(sweep(4.0, card(4.0)))
    result = window.end(5.0)
    assert result is not None
    assert (result.peak_temperature_celsius, result.min_sm_clock_mhz) == (50.0, 1900.0)
    assert result.energy_joules == pytest.approx(300.0)


def test_what_no_card_offers_is_none_and_so_is_a_window_without_a_reading() -> None:
    window = StepGpuWindow()
    window.add(sweep(0.0, card(0.0)))
    window.begin(1.0)
    assert window.end(2.0) is None
    window.begin(3.0)
    window.add(GpuSamples(at=4.0, samples=(GpuSample(gpu=5, temperature_celsius=40.0),)))
    assert window.end(5.0) is not None
    other = StepGpuWindow()
    other.begin(0.0)
    other.add(GpuSamples(at=1.0, samples=(GpuSample(gpu=5, temperature_celsius=40.0),)))
    assert other.end(2.0) == StepGpus(peak_temperature_celsius=40.0)
