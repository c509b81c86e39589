"""Events as rows for a person, and back for a replay."""

from __future__ import annotations

import csv
import io

import pytest

from gpu_dash.model import events as ev
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuSourceState, ThrottleKind
from gpu_dash.model.load import LoadMode, LoadPlan, LoadState, StepResult
from gpu_dash.model.log import Severity
from gpu_dash.model.server import HandleKind, ServerState, ServerStatus
from gpu_dash.record.cells import csv_line
from gpu_dash.record.columns import EVENTS
from gpu_dash.record.journal import event_of, event_row, shifted
from tests.unit.record.recorded import ANCHOR, CARDS, on


def row_of(event: ev.Event) -> dict[str, str]:
    """As it comes out of the file."""
    row = event_row(ANCHOR, event)
    assert row is not None
    (cells,) = csv.reader(io.StringIO(csv_line(row).decode()))
    return dict(zip(EVENTS, cells, strict=True))


THROTTLE_BEGAN = ev.ThrottleBegan(
    at=on(10.0),
    gpu=3,
    kind=ThrottleKind.THERMAL,
    reasons=("hw_thermal", "sw_power_cap"),
    temperature_celsius=90.5,
    sm_clock_mhz=1200.0,
    sm_clock_max_mhz=1980.0,
)
THROTTLE_ENDED = ev.ThrottleEnded(
    at=on(14.0),
    gpu=3,
    kind=ThrottleKind.POWER_CAP,
    began_at=on(10.0),
    peak_temperature_celsius=91.0,
    lowest_sm_clock_mhz=1100.0,
)
SERVER_FAILED = ev.ServerChanged(
    at=on(20.0),
    status=ServerStatus(
        state=ServerState.FAILED,
        since=on(20.0),
        kind=HandleKind.PROCESS,
        model="acme/model-7b",
        stage_since=on(1.0),
        exit_code=-9,
        detail="exit code -9: out of memory",
        visible_gpus=(0, 1),
    ),
)
LOAD = ev.LoadChanged(
    at=on(30.0),
    state=LoadState.WARMUP,
    mode=LoadMode.RAMP,
    concurrency=8,
    step=3,
    window_opens_at=on(35.0),
    plan=LoadPlan(ramp=(1, 8)),
    detail="why",
)
EXACT: list[ev.Event] = [
    THROTTLE_BEGAN,
    THROTTLE_ENDED,
    SERVER_FAILED,
    LOAD,
    ev.StepBegan(at=on(40.0), step=3, concurrency=8, first_sent_at=on(39.5)),
    ev.GpuReadFailed(at=on(41.0), gpu=2, call="temperature", error="GPU is lost", lost=True),
    ev.GpuSourceChanged(at=on(42.0), source="nvml", state=GpuSourceState.LIVE, gpus=CARDS),
    ev.GpuSourceChanged(at=on(43.0), source="nvml", state=GpuSourceState.STALE, detail="silent"),
    ev.Notice(at=on(44.0), severity=Severity.ERROR, text="the disk is full"),
    ev.Finding(at=on(45.0), kind="xid", severity=Severity.CRITICAL, source="kernel"),
    ev.Finding(
        at=on(46.0),
        kind="nccl_timeout",
        severity=Severity.CRITICAL,
        source="log",
        subject="rank:1",
        message="-Watchdog, 'caught' \"it\"",
        first_check="@throttle",
        line=360,
    ),
]


@pytest.mark.parametrize("event", EXACT, ids=lambda event: type(event).__name__)
def test_what_is_written_comes_back_on_the_sessions_clock(event: ev.Event) -> None:
    assert event_of(row_of(event)) == shifted(event, -ANCHOR.monotonic)


@pytest.mark.parametrize("event", EXACT, ids=lambda event: type(event).__name__)
def test_shifting_there_and_back_changes_nothing(event: ev.Event) -> None:
    assert shifted(shifted(event, 64.0), -64.0) == event


def test_shifting_moves_every_moment() -> None:
    moved = shifted(SERVER_FAILED, 10.0)
    assert isinstance(moved, ev.ServerChanged)
    assert (moved.at, moved.status.since, moved.status.stage_since) == (on(30), on(30), on(11))
    began = shifted(
        ev.SessionBegan(at=on(0), session="s", folder="/s", anchor=ANCHOR), -ANCHOR.monotonic
    )
    assert isinstance(began, ev.SessionBegan)
    assert began.anchor == ClockAnchor(monotonic=0.0, utc=ANCHOR.utc)


@pytest.mark.parametrize(
    ("event", "kind", "severity", "source", "subject", "message"),
    [
        (
            THROTTLE_BEGAN,
            "throttle_begin",
            "error",
            "gpu",
            "gpu:3",
            "thermal, hw_thermal+sw_power_cap, 90 °C, 1200 MHz",
        ),
        (
            THROTTLE_ENDED,
            "throttle_end",
            "info",
            "gpu",
            "gpu:3",
            "power_cap, 4.0 s, 91 °C at most, 1100 MHz at least",
        ),
        (
            SERVER_FAILED,
            "server_state",
            "critical",
            "server",
            "acme/model-7b",
            "failed: exit code -9: out of memory",
        ),
        (LOAD, "load_state", "info", "load", "step:3", "warmup, 8 concurrent: why"),
        (EXACT[4], "step_begin", "info", "load", "step:3", "window open, 8 concurrent"),
        (EXACT[5], "gpu_lost", "critical", "gpu", "gpu:2", "temperature: GPU is lost"),
        (EXACT[6], "gpu_live", "info", "gpu", "nvml", "2 GPUs"),
        (EXACT[7], "gpu_stale", "warning", "gpu", "nvml", "silent"),
        (EXACT[8], "notice", "error", "gpu-dash", "", "the disk is full"),
        (EXACT[9], "xid", "critical", "kernel", "", ""),
        (
            ev.StepEnded(
                at=on(50),
                result=StepResult(
                    step=3,
                    concurrency=8,
                    time_s=40,
                    duration_s=5,
                    elapsed_s=6,
                    output_tokens_per_s=123.45,
                ),
            ),
            "step_end",
            "info",
            "load",
            "step:3",
            "123.5 output tokens/s",
        ),
        (ev.SessionEnded(at=on(60), session="s"), "session_end", "info", "gpu-dash", "", None),
    ],
)
def test_a_row_says_it_in_words(
    event: ev.Event, kind: str, severity: str, source: str, subject: str, message: str | None
) -> None:
    row = row_of(event)
    assert (row["kind"], row["severity"], row["source"], row["subject"]) == (
        kind,
        severity,
        source,
        subject,
    )
    if message is not None:
        assert row["message"] == message
    assert row["time_s"] == f"{event.at - ANCHOR.monotonic:.3f}"


def test_hostile_text_stays_text() -> None:
    row = row_of(
        ev.Finding(
            at=on(1),
            kind="=kind",
            severity=Severity.ERROR,
            source="log",
            subject="+gpu:0",
            message='=HYPERLINK("x")\x1b]0;t\x07\n\u202eline two, --api-key sk-secret',
        )
    )
    assert row["message"] == '\'=HYPERLINK("x") ⏎ line two, --api-key ***'
    assert (row["kind"], row["subject"]) == ("'=kind", "'+gpu:0")
    failed = row_of(
        ev.GpuReadFailed(at=on(1), gpu=0, call="x\x1b[2J", error="a\nb \u202e http://u:pw@h/")
    )
    assert "\\u001b" not in failed["data"]
    assert "\u202e" not in failed["data"]
    assert "pw" not in "".join(failed.values())


def test_a_long_prompt_is_not_repeated_in_every_row() -> None:
    plan = LoadPlan(prompt="a long prompt", extra_body={"x": 1}, ramp=(1, 2))
    row = row_of(ev.LoadChanged(at=on(1), state=LoadState.IDLE, plan=plan))
    assert "long prompt" not in row["data"]
    back = event_of(row)
    assert isinstance(back, ev.LoadChanged)
    assert back.plan == LoadPlan(ramp=(1, 2))


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"time_s": "1.0"},
        {"kind": "xid"},
        {"time_s": "x", "kind": "xid"},
        {"time_s": "1.0", "kind": "throttle_begin", "data": "{not json"},
        {"time_s": "1.0", "kind": "throttle_begin", "data": '{"type": "Unheard", "at": 1}'},
        {"time_s": "1.0", "kind": "step_end"},
        {"time_s": "1.0", "kind": "session_end"},
    ],
)
def test_a_row_that_is_no_event_is_left_out(row: dict[str, str]) -> None:
    assert event_of(row) is None


def test_a_severity_of_another_version_is_no_reason_to_lose_the_finding() -> None:
    row = {"time_s": "1.0", "kind": "xid", "severity": "fatal", "message": "m"}
    assert event_of(row) == ev.Finding(
        at=1.0, kind="xid", severity=Severity.INFO, source="", message="m"
    )


@pytest.mark.parametrize(
    "event",
    [
        ev.GpuSamples(at=1.0, samples=()),
        ev.LogLines(at=1.0, lines=()),
        ev.LoadTick(at=1.0, in_flight=0, interval_s=1.0, output_tokens=0),
        ev.RequestsEnded(at=1.0, requests=()),
        ev.SessionBegan(at=1.0, session="s", folder="/s", anchor=ANCHOR),
    ],
)
def test_events_with_a_file_of_their_own_have_no_row(event: ev.Event) -> None:
    assert event_row(ANCHOR, event) is None
