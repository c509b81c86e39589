"""Throttle seconds and clock deficit per card and step, of a capture or of a session.

    python bench/step_throttle.py CAPTURE.gpu.csv CAPTURE.requests.csv [--sm-clock-max 1980]
    python bench/step_throttle.py SESSION_FOLDER

A capture is a CSV of polled readings (``ts gpu temp_c sm_mhz util viol_power_ns viol_thermal_ns``)
and one of requests (``ts concurrency``): a step is the time between the first and the last request
sent at one concurrency. Both are counted by the definitions of ``gpu_dash.analysis.card_steps``.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

from gpu_dash.analysis.card_steps import CardReading, CardStep, Window, card_steps
from gpu_dash.cli.sessions.card_steps import HEAD, card_step_cells
from gpu_dash.record.card_steps import card_steps_of
from gpu_dash.record.reader import SessionReader


def main() -> None:
    parser = argparse.ArgumentParser(description="Throttle seconds and clock deficit.")
    parser.add_argument("readings", type=Path, help="a session folder, or the CSV of readings")
    parser.add_argument("requests", type=Path, nargs="?", help="the CSV of requests")
    parser.add_argument("--sm-clock-max", type=float, default=1980.0, help="MHz, of a capture")
    arguments = parser.parse_args()
    if arguments.readings.is_dir():
        cards = card_steps_of(SessionReader(arguments.readings))
    else:
        cards = of_capture(arguments.readings, arguments.requests, arguments.sm_clock_max)
    rows = [HEAD, *(card_step_cells(card) for card in cards)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def of_capture(readings: Path, requests: Path, sm_clock_max_mhz: float) -> list[CardStep]:
    """The steps of a capture."""
    sent: dict[int, list[float]] = {}
    for row in _rows(requests):
        sent.setdefault(int(row["concurrency"]), []).append(float(row["ts"]))
    windows = [
        Window(step, concurrency, min(moments), max(moments))
        for step, (concurrency, moments) in enumerate(sent.items(), start=1)
    ]
    return card_steps(windows, (_reading(row, sm_clock_max_mhz) for row in _rows(readings)))


def _reading(row: dict[str, str], sm_clock_max_mhz: float) -> CardReading:
    return CardReading(
        at_s=float(row["ts"]),
        gpu=int(row["gpu"]),
        sm_clock_mhz=float(row["sm_mhz"]),
        sm_clock_max_mhz=sm_clock_max_mhz,
        utilization_percent=float(row["util"]),
        temperature_celsius=float(row["temp_c"]),
        throttle_thermal_s=float(row["viol_thermal_ns"]) / 1e9,
        throttle_power_s=float(row["viol_power_ns"]) / 1e9,
    )


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


if __name__ == "__main__":
    main()
