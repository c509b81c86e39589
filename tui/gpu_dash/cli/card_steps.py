"""The table of cards by step: what throttling cost them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpu_dash.analysis.card_steps import CardReading, CardStep, Window, card_steps
from gpu_dash.record.reader import SessionReader

HEAD = ("STEP", "LOAD", "GPU", "THERMAL", "POWER CAP", "CLOCK DEFICIT", "MIN CLOCK", "PEAK")


def card_steps_of(reader: SessionReader) -> list[CardStep]:
    """Every card of a session in every step."""
    windows = [
        Window(
            step=int(step["step"]),
            concurrency=int(step["concurrency"] or 0),
            opens_s=step["time_s"],
            closes_s=step["time_s"] + step["duration_s"],
        )
        for step in reader.records("steps.csv")
        if None not in (step.get("step"), step.get("time_s"), step.get("duration_s"))
    ]
    return card_steps(windows, _readings(reader)) if windows else []


def card_step_cells(card: CardStep) -> tuple[str, ...]:
    """A line of the table."""
    return (
        str(card.step),
        str(card.concurrency),
        str(card.gpu),
        _value(card.throttle_thermal_s, " s"),
        _value(card.throttle_power_s, " s"),
        "-" if card.clock_deficit is None else f"{100 * card.clock_deficit:.1f} %",
        "-" if card.min_sm_clock_mhz is None else f"{card.min_sm_clock_mhz:.0f} MHz",
        "-" if card.peak_temperature_celsius is None else f"{card.peak_temperature_celsius:.0f} °C",
    )


def _readings(reader: SessionReader) -> Iterator[CardReading]:
    for row in reader.records("gpu.csv"):
        if row.get("time_s") is None or row.get("gpu") is None:
            continue
        yield CardReading(
            at_s=row["time_s"],
            gpu=int(row["gpu"]),
            sm_clock_mhz=_first(row, "sm_clock_mean_mhz", "sm_clock_mhz"),
            sm_clock_max_mhz=row.get("sm_clock_max_mhz"),
            utilization_percent=row.get("utilization_percent"),
            temperature_celsius=_first(row, "temperature_max_celsius", "temperature_celsius"),
            throttle_thermal_s=row.get("throttle_thermal_s"),
            throttle_power_s=row.get("throttle_power_s"),
            lowest_sm_clock_mhz=row.get("sm_clock_min_mhz"),
        )


def _first(row: dict[str, Any], *names: str) -> float | None:
    """The first that is told: what a whole second's samples say goes before its last one."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def _value(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.1f}{unit}"
