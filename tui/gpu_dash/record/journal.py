"""``events.csv``: what happened, one row each, for a person to read and for a replay to play.

A row's first columns say it in words. Where they do not hold all of it, the column ``data`` has
the event as JSON, its moments in seconds since the session's start, so that a replay shows the
same as the screen did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gpu_dash.model import events as ev
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuSourceState, ThrottleKind
from gpu_dash.model.load import load_words
from gpu_dash.model.log import Severity
from gpu_dash.model.server import ServerState
from gpu_dash.model.text import one_line
from gpu_dash.record.cells import number_cell, text_cell, text_of, value_of
from gpu_dash.record.redact import hide_secrets
from gpu_dash.record.rows import time_cells

NOTICE = "notice"
STEP_END = "step_end"
SESSION_END = "session_end"

_decoder = msgspec.json.Decoder(ev.Event)

_SOURCE_SEVERITY = {
    GpuSourceState.STARTING: Severity.INFO,
    GpuSourceState.LIVE: Severity.INFO,
    GpuSourceState.STALE: Severity.WARNING,
    GpuSourceState.FAILED: Severity.ERROR,
    GpuSourceState.NONE: Severity.INFO,
}
_SERVER_SEVERITY = {ServerState.UNREACHABLE: Severity.ERROR, ServerState.FAILED: Severity.CRITICAL}
THROTTLE_CHECK = {
    ThrottleKind.THERMAL: "air flow, fans and the neighbouring card; then a lower power limit",
    ThrottleKind.POWER_BRAKE: "power supply, cables and the power cap of the chassis",
    ThrottleKind.SLOWDOWN: "temperature, power cables and the power cap of the chassis",
    ThrottleKind.POWER_CAP: "",
}
"""What to look at first."""


@dataclass(frozen=True)
class _Entry:
    """A row in words."""

    kind: str
    severity: Severity = Severity.INFO
    source: str = "gpu-dash"
    subject: str = ""
    message: str = ""
    first_check: str = ""
    line: int | None = None
    is_whole: bool = False
    """The words hold all of the event."""


def event_row(anchor: ClockAnchor, event: ev.Event) -> list[str] | None:
    """The row of an event; ``None`` for one that has a file of its own or none at all."""
    entry = _entry(event)
    if entry is None:
        return None
    data = "" if entry.is_whole else _to_json(shifted(event, -anchor.monotonic))
    return [
        *time_cells(anchor, event.at),
        text_cell(entry.kind),
        entry.severity.value,
        text_cell(entry.source),
        text_cell(entry.subject),
        text_cell(hide_secrets(entry.message)),
        text_cell(entry.first_check),
        number_cell(entry.line),
        data,
    ]


def event_of(row: Mapping[str, str]) -> ev.Event | None:
    """The event of a row, its time counted from the session's start; ``None`` for a row that
    only points to another file, or that cannot be read."""
    at = value_of(row.get("time_s", ""))
    kind = text_of(row.get("kind", ""))
    if at is None or not kind or kind in (STEP_END, SESSION_END):
        return None
    if data := row.get("data"):
        try:
            return _decoder.decode(data)
        except msgspec.DecodeError:
            return None
    severity = _severity_of(row.get("severity", ""))
    message = text_of(row.get("message", ""))
    if kind == NOTICE:
        return ev.Notice(at=at, severity=severity, text=message)
    line = value_of(row.get("line", ""))
    return ev.Finding(
        at=at,
        kind=kind,
        severity=severity,
        source=text_of(row.get("source", "")),
        subject=text_of(row.get("subject", "")),
        message=message,
        first_check=text_of(row.get("first_check", "")),
        line=None if line is None else int(line),
    )


def shifted(event: ev.Event, seconds: float) -> ev.Event:
    """The same event with all its monotonic moments moved: from the host's clock to the
    session's and back."""
    replace = msgspec.structs.replace

    def moved(moment: float | None) -> float | None:
        return None if moment is None else moment + seconds

    at = event.at + seconds
    match event:
        case ev.SessionBegan(anchor=anchor):
            moment = replace(anchor, monotonic=anchor.monotonic + seconds)
            return replace(event, at=at, anchor=moment)
        case ev.ThrottleEnded(began_at=began_at):
            return replace(event, at=at, began_at=began_at + seconds)
        case ev.ServerChanged(status=status):
            since, stage_since = status.since + seconds, status.stage_since + seconds
            return replace(
                event, at=at, status=replace(status, since=since, stage_since=stage_since)
            )
        case ev.LoadChanged(window_opens_at=opens_at, window_closes_at=closes_at):
            return replace(
                event, at=at, window_opens_at=moved(opens_at), window_closes_at=moved(closes_at)
            )
        case ev.StepBegan(first_sent_at=first_sent_at):
            return replace(event, at=at, first_sent_at=first_sent_at + seconds)
        case ev.RequestsEnded(requests=requests):
            return replace(
                event,
                at=at,
                requests=tuple(
                    replace(r, scheduled=r.scheduled + seconds, sent=r.sent + seconds)
                    for r in requests
                ),
            )
        case _:
            return replace(event, at=at)


def _entry(event: ev.Event) -> _Entry | None:
    match event:
        case ev.Finding():
            return _Entry(
                kind=event.kind,
                severity=event.severity,
                source=event.source,
                subject=event.subject,
                message=event.message,
                first_check=event.first_check,
                line=event.line,
                is_whole=True,
            )
        case ev.Notice(severity=severity, text=text):
            return _Entry(NOTICE, severity, message=text, is_whole=True)
        case ev.ThrottleBegan() | ev.ThrottleEnded() | ev.GpuReadFailed() | ev.GpuSourceChanged():
            return _gpu_entry(event)
        case ev.ServerChanged(status=status):
            words = [f"{status.state}", status.stage, status.detail]
            severity = _SERVER_SEVERITY.get(status.state, Severity.INFO)
            message = ": ".join(word for word in words if word)
            return _Entry("server_state", severity, "server", status.model, message)
        case ev.LoadChanged(state=state, step=step, detail=detail):
            asked = load_words(event.concurrency, event.request_rate)
            message = f"{state}, {asked}" + (f": {detail}" if detail else "")
            return _Entry("load_state", source="load", subject=f"step:{step}", message=message)
        case ev.StepBegan(step=step):
            message = f"window open, {load_words(event.concurrency, event.request_rate)}"
            return _Entry("step_begin", source="load", subject=f"step:{step}", message=message)
        case ev.StepEnded(result=result):
            message = f"{result.output_tokens_per_s:.1f} output tokens/s"
            subject = f"step:{result.step}"
            return _Entry(STEP_END, source="load", subject=subject, message=message, is_whole=True)
        case ev.SessionEnded():
            return _Entry(SESSION_END, message="the session ended", is_whole=True)
        case _:
            return None


def _gpu_entry(
    event: ev.ThrottleBegan | ev.ThrottleEnded | ev.GpuReadFailed | ev.GpuSourceChanged,
) -> _Entry:
    match event:
        case ev.ThrottleBegan(kind=kind):
            values = [
                "+".join(event.reasons),
                _measured(event.temperature_celsius, "°C"),
                _measured(event.sm_clock_mhz, "MHz"),
            ]
            return _Entry(
                "throttle_begin",
                Severity.ERROR if kind.is_alarm else Severity.INFO,
                "gpu",
                f"gpu:{event.gpu}",
                ", ".join([f"{kind}", *(value for value in values if value)]),
                THROTTLE_CHECK[kind],
            )
        case ev.ThrottleEnded(kind=kind):
            values = [
                f"{event.at - event.began_at:.1f} s",
                _measured(event.peak_temperature_celsius, "°C at most"),
                _measured(event.lowest_sm_clock_mhz, "MHz at least"),
            ]
            message = ", ".join([f"{kind}", *(value for value in values if value)])
            return _Entry("throttle_end", Severity.INFO, "gpu", f"gpu:{event.gpu}", message)
        case ev.GpuReadFailed(gpu=gpu, call=call, error=error, lost=lost):
            return _Entry(
                "gpu_lost" if lost else "gpu_read_failed",
                Severity.CRITICAL if lost else Severity.WARNING,
                "gpu",
                f"gpu:{gpu}",
                f"{call}: {error}",
                "kernel log for an Xid, then power cables and seat of the card" if lost else "",
            )
        case ev.GpuSourceChanged(source=source, state=state, detail=detail, gpus=gpus):
            message = detail or f"{len(gpus)} GPUs"
            return _Entry(f"gpu_{state}", _SOURCE_SEVERITY[state], "gpu", source, message)


def _measured(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.0f} {unit}"


def _severity_of(cell: str) -> Severity:
    try:
        return Severity(cell)
    except ValueError:
        return Severity.INFO


def _to_json(event: ev.Event) -> str:
    if isinstance(event, ev.LoadChanged) and event.plan is not None:
        # The plan's texts are in session.toml; a long prompt would be repeated in each row.
        plan = msgspec.structs.replace(event.plan, prompt=None, extra_body={})
        event = msgspec.structs.replace(event, plan=plan)
    return msgspec.json.encode(_clean(msgspec.to_builtins(event))).decode()


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, float):
        return round(value, 6)
    return hide_secrets(one_line(value)) if isinstance(value, str) else value
