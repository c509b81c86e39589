"""The times of a start, kept for the next one."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec

from gpu_dash.model.server import ServerState, ServerStatus
from gpu_dash.server.start_times import (
    StageTimer,
    StartTimes,
    load_start_times,
    save_start_times,
)


def test_each_stage_is_timed_until_the_server_is_ready() -> None:
    timer = StageTimer()
    statuses = [
        (0.0, ServerStatus(state=ServerState.STARTING)),
        (1.0, ServerStatus(state=ServerState.STARTING, stage="loading", stage_since=1.0)),
        (
            9.0,
            ServerStatus(
                state=ServerState.STARTING, stage="loading", stage_since=1.0, stage_progress=0.5
            ),
        ),
        (31.0, ServerStatus(state=ServerState.STARTING, stage="compiling", stage_since=31.0)),
        (40.0, ServerStatus(state=ServerState.READY, ready_after_s=40.0)),
    ]

    told = [
        timer.take(before, after, at) for (_, before), (at, after) in itertools.pairwise(statuses)
    ]

    assert told == [None, None, None, StartTimes({"loading": 30.0, "compiling": 9.0}, 40.0)]


def test_a_start_that_fails_tells_no_times() -> None:
    starting = ServerStatus(state=ServerState.STARTING, stage="loading", stage_since=1.0)
    failed = msgspec.structs.replace(starting, state=ServerState.FAILED)

    assert StageTimer().take(starting, failed, 9.0) is None


def test_times_are_kept_by_profile(tmp_path: Path) -> None:
    path = tmp_path / "state" / "starts.json"
    save_start_times(path, "a", StartTimes({"loading": 30.0}, 40.0))
    save_start_times(path, "b", StartTimes({"loading": 3.0}, 4.0))

    assert load_start_times(path, "a") == StartTimes({"loading": 30.0}, 40.0)
    assert load_start_times(path, "c") == StartTimes()
    path.write_text("{")
    assert load_start_times(path, "a") == StartTimes()
