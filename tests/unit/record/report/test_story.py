"""What happened, and which part of the session the charts show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import ThrottleKind
from gpu_dash.model.load import LoadState, StepResult
from gpu_dash.model.log import Severity
from gpu_dash.model.server import ServerState, ServerStatus
from gpu_dash.record.reader import SessionReader
from gpu_dash.record.report.story import Found, Story, Window, read_story, shown_span
from tests.unit.record.recorded import on, record, session_events

END_S = 100.0


def story_of(folder: Path, events: Sequence[ev.Event]) -> Story:
    record(folder, events)
    return read_story(SessionReader(folder), END_S)


def result(step: int, opens_s: float) -> StepResult:
    return StepResult(step=step, concurrency=8, time_s=opens_s, duration_s=10.0, elapsed_s=11.0)


def began(second: float, step: int) -> ev.StepBegan:
    return ev.StepBegan(at=on(second), step=step, concurrency=8, first_sent_at=on(second))


def loading(second: float, state: LoadState) -> ev.LoadChanged:
    return ev.LoadChanged(at=on(second), state=state, concurrency=8)


def throttle(second: float, kind: ThrottleKind = ThrottleKind.THERMAL) -> ev.ThrottleBegan:
    return ev.ThrottleBegan(
        at=on(second), gpu=1, kind=kind, reasons=("hw_thermal",), temperature_celsius=90.0
    )


def test_the_whole_session_is_told(tmp_path: Path) -> None:
    story = story_of(tmp_path, session_events())
    assert [(w.load, w.opens_s, w.closes_s) for w in story.windows] == [
        ("1", 8.0, 20.0),
        ("4", 26.5, 40.25),
    ]
    (hot,) = story.throttles
    assert (hot.gpu, hot.began_s, hot.ended_s, hot.reasons) == (1, 30.0, 34.0, ("hw_thermal",))
    assert (hot.peak_temperature_celsius, hot.lowest_sm_clock_mhz, hot.is_over) == (
        90.5,
        1200,
        True,
    )
    assert [found.kind for found in story.findings] == [
        "nccl_timeout",
        "notice",
        "gpu_read_failed",
    ]
    assert story.findings[0].first_check


def test_what_had_not_ended_ends_with_the_recording(tmp_path: Path) -> None:
    events: list[ev.Event] = [began(20.0, 1), throttle(30.0)]
    story = story_of(tmp_path, events)
    assert [(w.opens_s, w.closes_s, w.result) for w in story.windows] == [(20.0, END_S, None)]
    (hot,) = story.throttles
    assert (hot.ended_s, hot.is_over, hot.peak_temperature_celsius) == (END_S, False, None)


def test_a_window_closes_when_the_load_changes_and_not_when_its_result_comes(
    tmp_path: Path,
) -> None:
    events: list[ev.Event] = [
        began(20.0, 1),
        loading(20.0, LoadState.RUNNING),
        loading(30.0, LoadState.WARMUP),
        began(40.0, 2),
        loading(50.0, LoadState.PAUSED),
    ]
    story = story_of(tmp_path, events)
    assert [(w.opens_s, w.closes_s) for w in story.windows] == [(20.0, 30.0), (40.0, 50.0)]


def test_a_step_whose_beginning_was_not_recorded_is_there(tmp_path: Path) -> None:
    story = story_of(tmp_path, [ev.StepEnded(at=on(31.0), result=result(3, 20.0))])
    assert [(w.step, w.opens_s, w.closes_s) for w in story.windows] == [(3, 20.0, 30.0)]


def test_the_later_finding_of_a_line_replaces_the_earlier(tmp_path: Path) -> None:
    def finding(second: float, message: str, line: int | None) -> ev.Finding:
        return ev.Finding(
            at=on(second),
            kind="cuda_oom",
            severity=Severity.ERROR,
            source="log",
            message=message,
            line=line,
        )

    story = story_of(
        tmp_path,
        [
            finding(1.0, "early", 7),
            finding(2.0, "other", 8),
            finding(3.0, "late", 7),
            finding(4.0, "twice", None),
            finding(5.0, "twice", None),
        ],
    )
    assert [found.message for found in story.findings] == ["other", "late", "twice", "twice"]


def test_a_message_without_end_is_cut(tmp_path: Path) -> None:
    notice = ev.Notice(at=on(1.0), severity=Severity.ERROR, text="x" * 100_000)
    (found,) = story_of(tmp_path, [notice]).findings
    assert found.message == "x" * 500 + " …"


def test_a_server_that_fails_is_one_finding_however_often_it_is_said(tmp_path: Path) -> None:
    def server(second: float, state: ServerState, detail: str = "") -> ev.ServerChanged:
        return ev.ServerChanged(
            at=on(second), status=ServerStatus(state=state, since=on(second), detail=detail)
        )

    story = story_of(
        tmp_path,
        [
            server(1.0, ServerState.READY),
            server(2.0, ServerState.FAILED, "exit code 1"),
            server(2.5, ServerState.FAILED, "exit code 1: out of memory"),
            server(3.0, ServerState.STARTING),
            server(4.0, ServerState.UNREACHABLE),
        ],
    )
    assert [(found.at_s, found.message) for found in story.findings] == [
        (2.0, "failed: exit code 1"),
        (4.0, "unreachable"),
    ]


def test_the_charts_show_the_load_and_what_went_wrong() -> None:
    story = Story(windows=[Window(1, 8, None, 40_000.0, 40_100.0)])
    assert shown_span(story, 90_000.0) == (39_990.0, 40_110.0)
    crash = Found(at_s=50_000.0, severity=Severity.CRITICAL, kind="crash")
    hint = Found(at_s=80_000.0, severity=Severity.WARNING, kind="slow")
    start, end = shown_span(Story(windows=story.windows, findings=[crash, hint]), 90_000.0)
    assert start == 40_000.0 - 400.0
    assert end == 50_000.0 + 400.0


def test_without_load_and_trouble_the_whole_session_is_shown() -> None:
    assert shown_span(Story(), 300.0) == (0.0, 300.0)
    assert shown_span(Story(), 0.0) == (0.0, 1.0)
