"""The recorder: what it writes, and what it does when the disk does not."""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from gpu_dash.analysis.verdict import Condition, Verdict
from gpu_dash.model import events as ev
from gpu_dash.model.errors import RecordError
from gpu_dash.model.gpu import GpuSourceState
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.model.server import ServerState, ServerStatus
from gpu_dash.record.columns import FILES
from gpu_dash.record.meta import read_meta
from gpu_dash.record.recorder import FLUSH_S, WAKE_EVENTS, Recorder
from tests.unit.record.recorded import (
    ANCHOR,
    CARDS,
    meta,
    on,
    read_csv,
    record,
    session_events,
)

DEADLINE_S = 10.0
_real_write = os.write


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flush more often than a real recorder, so that no test waits for it."""
    monkeypatch.setattr("gpu_dash.record.recorder.FLUSH_S", 0.01)


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def notice(number: int) -> ev.Notice:
    return ev.Notice(at=on(number / 1000), severity=Severity.INFO, text=f"notice {number}")


class Disk:
    """``os.write`` of a disk that can be full or hang."""

    def __init__(self) -> None:
        self.is_full = False
        self.is_free = threading.Event()
        self.is_free.set()
        self.hangs = threading.Event()

    def __call__(self, file: int, data: bytes) -> int:
        if not self.is_free.is_set():
            self.hangs.set()
            assert self.is_free.wait(DEADLINE_S)
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return _real_write(file, data)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, often: None) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(os, "write", disk)
    yield disk
    disk.is_free.set()


def test_all_files_are_there_from_the_first_moment(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, meta(), lambda text: None)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {*FILES, "session.toml"} - {"gpu_fast.csv"}
    for name in names - {"session.toml"}:
        assert (tmp_path / name).read_text() == ",".join(FILES[name]) + "\n"
    recorder.close()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_rows_are_on_the_disk_within_a_second(tmp_path: Path) -> None:
    assert FLUSH_S <= 0.5
    recorder = Recorder(tmp_path, meta(), lambda text: None)
    recorder.record(notice(1))
    began = time.monotonic()
    wait_for(lambda: len(read_csv(tmp_path / "events.csv")) == 1)
    assert time.monotonic() - began < 1.0
    recorder.close()


def test_a_session_leaves_whole_files_with_what_happened(tmp_path: Path) -> None:
    assert record(tmp_path, session_events()) == []
    rows = {name: read_csv(tmp_path / name) for name in FILES}
    assert len(rows["gpu.csv"]) == 2 * 60
    assert len(rows["requests.csv"]) == 12 + 48
    assert [row["step"] for row in rows["steps.csv"]] == ["1", "2"]
    assert len(rows["server.csv"]) == 55
    assert {row["gpu"] for row in rows["gpu_fast.csv"]} == {"1"}
    fast = [float(row["time_s"]) for row in rows["gpu_fast.csv"]]
    assert (min(fast), max(fast)) == pytest.approx((20.0, 44.0), abs=0.1)
    assert {row["kind"] for row in rows["events.csv"]} >= {
        "gpu_live",
        "server_state",
        "throttle_begin",
        "throttle_end",
        "nccl_timeout",
        "notice",
        "gpu_read_failed",
        "load_state",
        "step_begin",
        "step_end",
        "session_end",
    }
    for name in FILES:
        for line in (tmp_path / name).read_bytes().splitlines():
            for cell in line.decode().split(","):
                assert cell.strip('"')[:1] not in ("=", "+", "@", "\t")


def test_what_events_say_of_the_session_goes_into_its_toml(tmp_path: Path) -> None:
    verdict = Verdict(
        passed=False, conditions=(Condition(name="throughput_held", passed=False, detail="x"),)
    )
    recorder = Recorder(tmp_path, meta(), lambda text: None)
    for event in session_events():
        recorder.record(event)
    recorder.describe(vllm_version="0.33.0")
    recorder.finish(verdict=verdict, exit_code=0, knee_concurrency=4)
    recorder.close()
    found = read_meta(tmp_path)
    assert found == recorder.meta
    assert found is not None
    assert found.gpus == CARDS
    assert (found.gpu_source, found.model) == ("sim", "acme/model-7b")
    assert (found.visible_gpus, found.vllm_version) == ((0, 1), "0.33.0")
    assert found.ended_utc == ANCHOR.time_utc(on(60))
    assert (found.verdict, found.exit_code, found.knee_concurrency) == (verdict, 0, 4)
    assert found.utc_offset_s is not None


def test_a_server_that_stops_does_not_lose_its_name(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, meta(model="known"), lambda text: None)
    stopped = ServerStatus(state=ServerState.STOPPED)
    recorder.record(ev.ServerChanged(at=on(1), status=stopped))
    recorder.record(ev.GpuSourceChanged(at=on(1), source="nvml", state=GpuSourceState.STALE))
    recorder.close()
    assert recorder.meta.model == "known"
    assert recorder.meta.gpus == ()


def test_the_next_recorder_goes_on_in_the_same_files(tmp_path: Path) -> None:
    events = session_events()
    record(tmp_path, [event for event in events if event.at < on(30)])
    for name in ("events.csv", "gpu.csv"):
        with (tmp_path / name).open("a") as file:
            file.write('12.5,"cut in the midd')
    known = read_meta(tmp_path)
    assert known is not None
    record(tmp_path, [event for event in events if event.at >= on(30)], gpus=known.gpus)
    whole = tmp_path / "whole"
    whole.mkdir()
    record(whole, events)
    for name in ("gpu.csv", "requests.csv", "steps.csv", "events.csv"):
        assert read_csv(tmp_path / name) == read_csv(whole / name), name


def test_a_file_of_an_older_version_keeps_its_columns(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("kind,time_s,gone\nxid,1.000,x\n")
    record(tmp_path, [notice(5000)])
    assert (tmp_path / "events.csv").read_text() == (
        "kind,time_s,gone\nxid,1.000,x\nnotice,5.000,\n"
    )


def test_the_progress_of_a_stage_is_not_a_row_each_time(tmp_path: Path) -> None:
    def loading(stage: str, progress: float) -> ev.ServerChanged:
        status = ServerStatus(
            state=ServerState.STARTING, stage=stage, stage_progress=progress, model="m"
        )
        return ev.ServerChanged(at=on(progress), status=status)

    events = [loading("weights", part / 10) for part in range(10)]
    record(tmp_path, [*events, loading("compiling", 1.0), loading("weights", 1.5)])
    rows = read_csv(tmp_path / "events.csv")
    assert [(row["time_s"], row["message"]) for row in rows] == [
        ("0.000", "starting: weights"),
        ("1.000", "starting: compiling"),
        ("1.500", "starting: weights"),
    ]


def test_log_lines_and_ticks_are_not_its_business(tmp_path: Path) -> None:
    record(
        tmp_path,
        [
            ev.LogLines(at=on(1), lines=(LogLine(1, "x"),)),
            ev.LoadTick(at=on(1), in_flight=1, interval_s=1.0, output_tokens=5),
            ev.SessionBegan(at=on(0), session="s", folder="/s", anchor=ANCHOR),
        ],
    )
    assert read_csv(tmp_path / "events.csv") == []


def test_after_closing_it_takes_nothing_and_may_be_closed_again(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, meta(), lambda text: None)
    recorder.close()
    recorder.record(notice(1))
    recorder.close()
    assert read_csv(tmp_path / "events.csv") == []


@pytest.mark.parametrize("blocked", ["events.csv", "session.toml"])
def test_a_folder_that_cannot_be_written_is_said_in_one_line(tmp_path: Path, blocked: str) -> None:
    (tmp_path / blocked).mkdir()
    (tmp_path / blocked / "x").write_text("")
    with pytest.raises(RecordError, match=f"{tmp_path}: .*--out"):
        Recorder(tmp_path, meta(), lambda text: None)


def test_a_folder_on_a_full_disk_is_said_in_one_line(tmp_path: Path, disk: Disk) -> None:
    disk.is_full = True
    with pytest.raises(RecordError, match="No space left on device; make room"):
        Recorder(tmp_path, meta(), lambda text: None)


# -- a disk that is full -----------------------------------------------------------------------


def test_a_full_disk_costs_rows_that_are_counted_and_said_once(tmp_path: Path, disk: Disk) -> None:
    said: list[str] = []
    recorder = Recorder(tmp_path, meta(), said.append, settle_s=0.0)
    recorder.record(notice(1))
    wait_for(lambda: len(read_csv(tmp_path / "events.csv")) == 1)

    disk.is_full = True
    for number in (2, 3, 4):
        recorder.record(notice(number))
    wait_for(lambda: recorder.rows_lost == 3)
    assert len(said) == 1
    assert re.match(rf"{tmp_path}: No space left on device; rows are lost", said[0])

    disk.is_full = False
    recorder.record(notice(5))
    wait_for(lambda: len(said) == 2)
    recorder.close()
    assert re.match(rf"{tmp_path}: the recording goes on; lost: 3 rows of events.csv", said[1])
    assert [row["message"] for row in read_csv(tmp_path / "events.csv")] == ["notice 1", "notice 5"]
    found = read_meta(tmp_path)
    assert found is not None
    assert found.rows_lost == recorder.rows_lost == 3
    assert len(said) == 2


def test_a_disk_that_stays_full_is_summed_up_at_the_end(tmp_path: Path, disk: Disk) -> None:
    said: list[str] = []
    recorder = Recorder(tmp_path, meta(), said.append)
    disk.is_full = True
    for number in range(5):
        recorder.record(notice(number))
    recorder.close()
    assert len(said) == 2
    assert said[1].endswith("the recording ended; lost: 5 rows of events.csv")


def test_a_disk_on_the_edge_is_not_announced_again_and_again(tmp_path: Path, disk: Disk) -> None:
    said: list[str] = []
    recorder = Recorder(tmp_path, meta(), said.append, settle_s=60.0)

    def has_lost(count: int) -> bool:
        return recorder.rows_lost == count

    def has_rows(count: int) -> bool:
        return len(read_csv(tmp_path / "events.csv")) == count

    for number in range(3):
        disk.is_full = True
        recorder.record(notice(number))
        wait_for(partial(has_lost, number + 1))
        disk.is_full = False
        recorder.record(notice(number + 100))
        wait_for(partial(has_rows, number + 1))
    assert len(said) == 1
    recorder.close()


# -- a disk that hangs -------------------------------------------------------------------------


def test_a_disk_that_hangs_stops_nobody_and_what_is_dropped_is_said(
    tmp_path: Path, disk: Disk
) -> None:
    said: list[str] = []
    recorder = Recorder(tmp_path, meta(), said.append, queue_events=100, settle_s=0.0)
    disk.is_free.clear()
    recorder.record(notice(0))
    assert disk.hangs.wait(DEADLINE_S)
    began = time.monotonic()
    for number in range(1, 351):
        recorder.record(notice(number))
    assert time.monotonic() - began < 0.5
    assert recorder.rows_lost == 250
    assert len(said) == 1
    assert "does not take the recording" in said[0]

    disk.is_free.set()
    wait_for(lambda: len(read_csv(tmp_path / "events.csv")) == 101)
    recorder.record(notice(999))
    wait_for(lambda: len(said) == 2)
    recorder.close()
    assert said[1].endswith("the recording goes on; lost: 250 events that came meanwhile")
    rows = read_csv(tmp_path / "events.csv")
    assert [row["message"] for row in rows] == [
        *(f"notice {number}" for number in range(101)),
        "notice 999",
    ]


def test_closing_on_a_disk_that_hangs_gives_up_and_says_so(tmp_path: Path, disk: Disk) -> None:
    said: list[str] = []
    recorder = Recorder(tmp_path, meta(), said.append)
    disk.is_free.clear()
    recorder.record(notice(0))
    assert disk.hangs.wait(DEADLINE_S)
    recorder.close(timeout_s=0.05)
    assert said == [f"{tmp_path}: the disk hangs; the last rows are not written"]
    disk.is_free.set()
    recorder.close()
    assert len(read_csv(tmp_path / "events.csv")) == 1


def test_a_burst_wakes_the_writer_before_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_dash.record.recorder.FLUSH_S", 60.0)
    recorder = Recorder(tmp_path, meta(), lambda text: None)
    for number in range(WAKE_EVENTS + 1):
        recorder.record(notice(number))
    wait_for(lambda: len(read_csv(tmp_path / "events.csv")) > WAKE_EVENTS // 2)
    recorder.close()
    assert len(read_csv(tmp_path / "events.csv")) == WAKE_EVENTS + 1
