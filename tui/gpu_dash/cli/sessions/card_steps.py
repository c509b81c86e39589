"""The table of cards by step: what throttling cost them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpu_dash.analysis.card_steps import CardReading, CardStep, Window, card_steps
from gpu_dash.cli.sessions import words
from gpu_dash.record.reader import SessionReader

HEAD = ("STEP", "LOAD", "GPU", "THERMAL", "POWER CAP", "CLOCK DEFICIT", "MIN CLOCK", "PEAK")

_READ = (
    "time_s", "gpu", "sm_clock_mhz", "sm_clock_max_mhz", "utilization_percent",
    "temperature_celsius", "temperature_max_celsius", "throttle_thermal_s", "throttle_power_s",
    "sm_clock_min_mhz",
)  # fmt: skip


def card_steps_of(reader: SessionReader) -> list[CardStep]:
    """Every card of a session in every step."""
    windows = [
        Window(
            step=step.step,
            concurrency=step.concurrency,
            request_rate=step.request_rate,
            opens_s=step.time_s,
            closes_s=step.time_s + step.duration_s,
        )
        for step in reader.steps()
    ]
    return card_steps(windows, _readings(reader)) if windows else []


def card_step_cells(card: CardStep) -> tuple[str, ...]:
    """A line of the table."""
    deficit = card.clock_deficit
    return (
        str(card.step),
        words.load(card.concurrency, card.request_rate),
        str(card.gpu),
        words.value(card.throttle_thermal_s, " s", digits=1),
        words.value(card.throttle_power_s, " s", digits=1),
        words.value(None if deficit is None else 100 * deficit, " %", digits=1),
        words.value(card.min_sm_clock_mhz, " MHz"),
        words.value(card.peak_temperature_celsius, " °C"),
    )


def _readings(reader: SessionReader) -> Iterator[CardReading]:
    for row in reader.records("gpu.csv", _READ):
        if row.get("time_s") is None or row.get("gpu") is None:
            continue
        yield CardReading(
            at_s=row["time_s"],
            gpu=int(row["gpu"]),
            sm_clock_mhz=row.get("sm_clock_mhz"),
            sm_clock_max_mhz=row.get("sm_clock_max_mhz"),
            utilization_percent=row.get("utilization_percent"),
            temperature_celsius=_highest(row),
            throttle_thermal_s=row.get("throttle_thermal_s"),
            throttle_power_s=row.get("throttle_power_s"),
            lowest_sm_clock_mhz=row.get("sm_clock_min_mhz"),
        )


def _highest(row: dict[str, Any]) -> float | None:
    """The highest of the row's second, where it is told."""
    extreme = row.get("temperature_max_celsius")
    return row.get("temperature_celsius") if extreme is None else extreme
