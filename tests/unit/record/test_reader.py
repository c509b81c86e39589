"""A folder read back: the same facts, and whatever of them is left."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from gpu_dash.agent.store import Store
from gpu_dash.model import events as ev
from gpu_dash.model.errors import RecordError
from gpu_dash.model.server import HandleKind
from gpu_dash.record.columns import FILES
from gpu_dash.record.journal import shifted
from gpu_dash.record.reader import SessionReader
from tests.unit.record.recorded import ANCHOR, CARDS, read_csv, record, session_events

LOG = (
    "INFO 01-15 08:00:05 [core.py:58] starting\n"
    "\x1b[31mno stamp\x1b[0m\n"
    "ERROR 01-15 08:00:30 [core.py:58] it timed out\n"
    "half a li"
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    record(folder, session_events(), utc_offset_s=0)
    (folder / "server.log").write_text(LOG)
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    for path in recorded.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def by_kind(events: list[ev.Event]) -> dict[str, list[ev.Event]]:
    kinds: defaultdict[str, list[ev.Event]] = defaultdict(list)
    for event in events:
        kinds[type(event).__name__].append(event)
    return kinds


def nearly(struct: msgspec.Struct) -> list[object]:
    """Its values, the numbers to the microsecond."""
    return [
        pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
        for value in msgspec.structs.astuple(struct)
    ]


def test_the_same_facts_come_back(recorded: Path) -> None:
    read = by_kind(list(SessionReader(recorded).events()))
    told = by_kind([shifted(event, -ANCHOR.monotonic) for event in session_events()])
    for kind in ("GpuSourceChanged", "ServerChanged", "ThrottleBegan", "ThrottleEnded"):
        assert read[kind] == told[kind], kind
    for kind in ("StepBegan", "GpuReadFailed", "Notice", "SessionEnded"):
        assert read[kind] == told[kind], kind
    assert [
        e.metrics for e in read["ServerMetricsRead"] if isinstance(e, ev.ServerMetricsRead)
    ] == [e.metrics for e in told["ServerMetricsRead"] if isinstance(e, ev.ServerMetricsRead)]


def test_requests_and_steps_come_back_to_the_microsecond(recorded: Path) -> None:
    events = list(SessionReader(recorded).events())
    read = [r for e in events if isinstance(e, ev.RequestsEnded) for r in e.requests]
    told = [
        request
        for event in (shifted(event, -ANCHOR.monotonic) for event in session_events())
        if isinstance(event, ev.RequestsEnded)
        for request in event.requests
    ]
    for request, original in zip(read, told, strict=True):
        assert list(msgspec.structs.astuple(request)) == nearly(original)
    results = [e for e in events if isinstance(e, ev.StepEnded)]
    for back, there in zip(
        results, (e for e in session_events() if isinstance(e, ev.StepEnded)), strict=True
    ):
        assert back.at == pytest.approx(there.at - ANCHOR.monotonic, abs=1e-3)
        assert list(msgspec.structs.astuple(back.result)) == nearly(there.result)


def test_a_store_comes_to_the_same_state(recorded: Path) -> None:
    live, replayed = Store(), Store()
    for event in session_events():
        live.fold(shifted(event, -ANCHOR.monotonic))
    for event in SessionReader(recorded).events():
        replayed.fold(event)
    assert replayed.server == live.server
    assert replayed.throttle_spans == live.throttle_spans
    assert [step.step for step in replayed.steps] == [step.step for step in live.steps]
    assert (replayed.requests_ok, replayed.requests_failed) == (
        live.requests_ok,
        live.requests_failed,
    )
    assert replayed.session_ended
    for gpu in (0, 1):
        shown, seen = replayed.gpus[gpu], live.gpus[gpu]
        assert shown.info == seen.info
        assert shown.latest is not None
        assert seen.latest is not None
        for name in ("temperature_celsius", "power_watts", "throttle_reasons", "headroom_celsius"):
            assert getattr(shown.latest, name) == getattr(seen.latest, name), name
        peaks = {int(p.at): (p.temperature_celsius, p.sm_clock_mhz) for p in shown.history}
        assert peaks == {int(p.at): (p.temperature_celsius, p.sm_clock_mhz) for p in seen.history}


def test_events_are_in_the_order_of_time_behind_the_beginning(recorded: Path) -> None:
    events = list(SessionReader(recorded).events())
    assert isinstance(events[0], ev.SessionBegan)
    assert events[0].anchor.monotonic == 0.0
    assert events[0].anchor.utc == ANCHOR.utc
    times = [event.at for event in events]
    assert times == sorted(times)


def test_old_readings_may_be_left_out(recorded: Path) -> None:
    reader = SessionReader(recorded)
    every, newest = (
        by_kind(list(reader.events())),
        by_kind(list(reader.events(readings_since_s=50))),
    )
    for kind in ("GpuSamples", "ServerMetricsRead"):
        assert newest[kind] == [event for event in every[kind] if event.at >= 50]
        assert 0 < len(newest[kind]) < len(every[kind])
    for kind in ("ThrottleBegan", "RequestsEnded", "StepEnded", "ServerChanged", "LogLines"):
        assert newest[kind] == every[kind]


def test_the_load_is_shown_again(recorded: Path) -> None:
    events = list(SessionReader(recorded).events())
    ticks = [event for event in events if isinstance(event, ev.LoadTick)]
    tokens = sum(int(row["output_tokens"]) for row in read_csv(recorded / "requests.csv"))
    assert sum(tick.output_tokens for tick in ticks) == tokens
    assert max(tick.in_flight for tick in ticks) > 1


def test_log_lines_have_their_stamps_and_marks(recorded: Path) -> None:
    events = SessionReader(recorded).events()
    batches = [event for event in events if isinstance(event, ev.LogLines)]
    lines = [
        (batch.at, line.number, line.text, line.kind) for batch in batches for line in batch.lines
    ]
    assert lines == [
        (4.5, 1, "INFO 01-15 08:00:05 [core.py:58] starting", ""),
        (4.5, 2, "no stamp", ""),
        (29.5, 3, "ERROR 01-15 08:00:30 [core.py:58] it timed out", "nccl_timeout"),
        (29.5, 4, "half a li", ""),
    ]


def test_a_note_of_where_the_log_is_is_no_log(folder: Path) -> None:
    record(folder, [], kind=HandleKind.EXTERNAL, gpus=CARDS)
    assert not [e for e in SessionReader(folder).events() if isinstance(e, ev.LogLines)]


@pytest.mark.parametrize("name", FILES)
def test_a_cut_last_line_is_left_out(folder: Path, name: str) -> None:
    before = list(SessionReader(folder).rows(name))
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-3])
    assert list(SessionReader(folder).rows(name)) == before[:-1]
    (folder / name).write_bytes(data + b'7.5,"cut')
    assert list(SessionReader(folder).rows(name)) == before
    (folder / name).write_bytes(data + b"7.5,too few\n")
    assert list(SessionReader(folder).rows(name)) == before


@pytest.mark.parametrize("name", [*FILES, "server.log", "session.toml"])
def test_a_missing_file_costs_only_what_it_held(folder: Path, name: str) -> None:
    (folder / name).unlink()
    reader = SessionReader(folder)
    kinds = by_kind(list(reader.events()))
    assert list(reader.rows(name)) == []
    assert reader.meta.anchor.utc == pytest.approx(ANCHOR.utc, abs=0.002)
    assert len(kinds) >= 8
    if name == "events.csv":
        (cards,) = kinds["GpuSourceChanged"]
        assert isinstance(cards, ev.GpuSourceChanged)
        assert cards.gpus == CARDS


def test_columns_that_this_version_does_not_know_are_left_out(folder: Path) -> None:
    for name in FILES:
        lines = (folder / name).read_text().splitlines()
        wider = [
            f"{'new_column' if number == 0 else '9'},{line}" for number, line in enumerate(lines)
        ]
        (folder / name).write_text("\n".join(wider) + "\n")
    read = by_kind(list(SessionReader(folder).events()))
    assert len(read["StepEnded"]) == 2
    assert len(read["ThrottleBegan"]) == 1
    assert len(read["GpuSamples"]) > 60


def test_rows_that_hold_nonsense_are_left_out(folder: Path) -> None:
    for name in FILES:
        with (folder / name).open("a") as file:
            file.write(",".join(["nonsense"] * len(FILES[name])) + "\n")
            file.write("," * (len(FILES[name]) - 1) + "\n")
    nonsense = by_kind(list(SessionReader(folder).events()))
    assert len(nonsense["StepEnded"]) == 2
    assert len(nonsense["RequestsEnded"]) == 8


def test_an_open_loop_step_comes_back(folder: Path) -> None:
    header, first, *_ = (folder / "steps.csv").read_text().splitlines()
    cells = first.split(",")
    cells[1:3] = ["", "2.5"]
    (folder / "steps.csv").write_text(f"{header}\n{','.join(cells)}\n")
    (step,) = [e for e in SessionReader(folder).events() if isinstance(e, ev.StepEnded)]
    assert (step.result.concurrency, step.result.request_rate) == (None, 2.5)


def test_values_of_records(recorded: Path) -> None:
    reader = SessionReader(recorded)
    request = next(reader.records("requests.csv"))
    assert isinstance(request["ttft_s"], float)
    assert request["counted"] in (True, False)
    assert request["detail"] is None or request["detail"].startswith("=cmd")
    refused = [r for r in reader.records("requests.csv") if r["outcome"] == "refused"]
    assert {r["detail"] for r in refused} == {"=cmd|' /C calc'!A0"}


def test_how_long_it_lasted(folder: Path) -> None:
    assert SessionReader(folder).duration_s == 60.0
    with (folder / "events.csv").open("a") as file:
        file.write("61.250,x")
    assert SessionReader(folder).duration_s == 60.0
    for name in ("gpu.csv", "server.csv", "events.csv"):
        (folder / name).write_text("")
    assert SessionReader(folder).duration_s == 0.0


def test_a_folder_without_a_session_is_said_in_one_line(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(RecordError, match="holds no session"):
            SessionReader(folder)
    (tmp_path / "gpu.csv").write_bytes(b"")
    assert [type(event) for event in SessionReader(tmp_path).events()] == [ev.SessionBegan]
