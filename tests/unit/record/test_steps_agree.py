"""``steps.csv`` is what a stranger computes from ``requests.csv`` by the definitions.

The stranger has the two files, plain csv and arithmetic; nothing of gpu-dash.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.record.recorded import IDLE_WATTS, SLO, read_csv, record, session_events

Row = dict[str, str]

NUMBERS_FROM_ELSEWHERE = {
    # from requests that this file does not hold: gaps between tokens
    *(f"itl_p{percent}_s" for percent in (50, 90, 99)),
    # from the cards
    "peak_temperature_celsius",
    "min_sm_clock_mhz",
    "peak_memory_used_bytes",
    "peak_total_power_watts",
    "throttle_thermal_s",
    "energy_joules",
    # what was asked for, and when
    "step",
    "concurrency",
    "request_rate",
    "time_s",
    "time_utc",
    "duration_s",
    "client_bound",
}


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] * (1 - (place - low)) + ordered[high] * (place - low)


def recomputed(step: Row, rows: list[Row]) -> dict[str, float]:
    opens, length = float(step["time_s"]), float(step["duration_s"])
    judged = [row for row in rows if row["counted"] == "true" and row["outcome"] == "ok"]
    answered = [row for row in rows if row["e2e_s"]]
    tokens = sum(int(row["tokens_in_window"]) for row in rows)
    last = max(float(row["time_s"]) + float(row["e2e_s"]) for row in answered)
    prompts = sum(
        int(row["prompt_tokens"])
        for row in rows
        if row["ttft_s"] and opens <= float(row["time_s"]) + float(row["ttft_s"]) <= opens + length
    )
    assert SLO.ttft_s is not None
    assert SLO.e2e_s is not None
    good = [
        r for r in judged if float(r["ttft_s"]) <= SLO.ttft_s and float(r["e2e_s"]) <= SLO.e2e_s
    ]
    numbers = {
        "elapsed_s": last - min(float(row["time_s"]) for row in rows),
        "requests_ok": sum(1 for row in rows if row["outcome"] == "ok"),
        "requests_failed": sum(1 for row in rows if row["outcome"] != "ok"),
        "output_tokens": sum(int(row["output_tokens"]) for row in rows),
        "output_tokens_per_s": tokens / length,
        "prompt_tokens_per_s": prompts / length,
        "goodput_per_s": len(good) / length,
        "retries": sum(int(row["retries"]) for row in rows),
        "joules_per_output_token": float(step["energy_joules"]) / tokens,
        "net_joules_per_output_token": (float(step["energy_joules"]) - IDLE_WATTS * length)
        / tokens,
    }
    for name in ("ttft", "tpot", "e2e"):
        for percent in (50, 90, 99):
            values = [float(row[f"{name}_s"]) for row in judged]
            numbers[f"{name}_p{percent}_s"] = percentile(values, percent)
    return numbers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("session")
    assert record(folder, session_events()) == []
    return folder


@pytest.mark.parametrize("number", ["1", "2"])
def test_every_column_follows_from_the_requests(folder: Path, number: str) -> None:
    (step,) = (row for row in read_csv(folder / "steps.csv") if row["step"] == number)
    rows = [row for row in read_csv(folder / "requests.csv") if row["step"] == number]
    assert len({row["outcome"] for row in rows}) > 1
    numbers = recomputed(step, rows)
    assert set(numbers) | NUMBERS_FROM_ELSEWHERE == set(step)
    for name, value in numbers.items():
        assert float(step[name]) == pytest.approx(value, abs=2e-6), name


@pytest.mark.parametrize("number", ["1", "2"])
def test_the_cards_columns_follow_from_the_card_rows(folder: Path, number: str) -> None:
    (step,) = (row for row in read_csv(folder / "steps.csv") if row["step"] == number)
    opens, closes = float(step["time_s"]), float(step["time_s"]) + float(step["duration_s"])
    rows = [row for row in read_csv(folder / "gpu.csv") if opens <= float(row["time_s"]) <= closes]
    peak = max(float(row["temperature_max_celsius"]) for row in rows)
    assert float(step["peak_temperature_celsius"]) == pytest.approx(peak, abs=0.1)
    assert float(step["min_sm_clock_mhz"]) == min(float(row["sm_clock_min_mhz"]) for row in rows)
    seconds = closes - opens
    assert float(step["energy_joules"]) == pytest.approx(2 * 412.125 * seconds, rel=0.01)
