"""The reference recording, made on two H200s: it reads back, and its numbers agree."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gpu_dash.agent.store import Store
from gpu_dash.analysis.knee import knee
from gpu_dash.analysis.percentile import percentile
from gpu_dash.model.gpu import ThrottleKind
from gpu_dash.model.load import StepResult
from gpu_dash.model.server import ServerState
from gpu_dash.record.reader import SessionReader
from gpu_dash.record.replay import Replay

FOLDER = Path(__file__).parents[2] / "data" / "h200-tp2"


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def store_at(replay: Replay, seconds: float) -> Store:
    store = Store()
    for event in replay.events_until(seconds):
        store.fold(event)
    return store


@pytest.fixture(scope="module")
def replay() -> Replay:
    return Replay.load(FOLDER)


def test_its_head_names_what_ran() -> None:
    meta = SessionReader(FOLDER).meta
    assert (meta.model, meta.gpu_source, meta.visible_gpus) == ("qwen3-32b", "nvml", (0, 1))
    assert [info.name for info in meta.gpus] == ["NVIDIA H200", "NVIDIA H200"]
    assert meta.knee_concurrency == 128


def test_every_step_is_what_its_requests_say() -> None:
    requests = rows("requests.csv")
    steps = rows("steps.csv")
    assert [int(step["concurrency"]) for step in steps] == [2**n for n in range(9)]
    for step in steps:
        mine = [row for row in requests if row["step"] == step["step"]]
        tokens = sum(int(row["tokens_in_window"]) for row in mine)
        rate = tokens / float(step["duration_s"])
        assert float(step["output_tokens_per_s"]) == pytest.approx(rate, rel=1e-4)
        ttft = [float(row["ttft_s"]) for row in mine if row["counted"] == "true"]
        for column, rank in (("ttft_p50_s", 50), ("ttft_p90_s", 90), ("ttft_p99_s", 99)):
            assert float(step[column]) == pytest.approx(percentile(ttft, rank), abs=2e-6)


def test_while_it_loads_the_store_shows_the_stage(replay: Replay) -> None:
    store = store_at(replay, 100.0)
    assert store.server.state is ServerState.STARTING
    assert store.server.stage == "weights are loaded"
    assert sorted(store.gpus) == [0, 1]


def test_under_the_highest_load_both_cards_are_held_down_by_their_power_cap(
    replay: Replay,
) -> None:
    store = store_at(replay, 380.0)
    assert store.server.state is ServerState.READY
    worst = [track.worst_throttle for track in store.gpu_tracks()]
    assert [span is not None and span.kind is ThrottleKind.POWER_CAP for span in worst] == [
        True,
        True,
    ]
    assert store.load_history[-1].in_flight == 256


def test_at_its_end_it_is_whole(replay: Replay) -> None:
    store = store_at(replay, replay.duration_s)
    assert store.session_ended
    assert store.requests_ok == len(rows("requests.csv"))
    assert store.requests_failed == 0
    assert len(store.steps) == 9
    found = knee(store.steps)
    assert isinstance(found, StepResult)
    assert found.concurrency == 128
    assert store.findings == []
    assert store.log[-1].number == (FOLDER / "server.log").read_bytes().count(b"\n")
