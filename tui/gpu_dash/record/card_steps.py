"""What throttling cost each card in each step, read from a session's files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpu_dash.analysis.card_steps import CardReading, CardStep, Window, card_steps
from gpu_dash.record.reader import SessionReader

_READ = (
    "time_s", "gpu", "sm_clock_mhz", "sm_clock_mean_mhz", "sm_clock_max_mhz", "utilization_percent",
    "temperature_celsius", "temperature_max_celsius", "throttle_thermal_s", "throttle_power_s",
    "sm_clock_min_mhz",
)  # fmt: skip


def card_steps_of(reader: SessionReader) -> list[CardStep]:
    """Every card of a session in every step.

    Raises:
        RecordError: a file cannot be read.
    """
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


def _readings(reader: SessionReader) -> Iterator[CardReading]:
    for row in reader.records("gpu.csv", _READ):
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
