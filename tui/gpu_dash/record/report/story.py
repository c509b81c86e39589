"""What happened, from ``events.csv`` and ``steps.csv``: windows of load, throttles, findings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import ThrottleKind
from gpu_dash.model.load import LoadState, StepResult
from gpu_dash.model.log import Severity
from gpu_dash.model.server import ServerState
from gpu_dash.record.reader import SessionReader

MESSAGE_CHARACTERS = 500
"""A line of a log may be a megabyte; ``events.csv`` has all of it."""


@dataclass(frozen=True)
class Window:
    """The window of a step."""

    step: int
    concurrency: int | None
    request_rate: float | None
    opens_s: float
    closes_s: float
    result: StepResult | None = None
    """``None``: it was not over when the recording ended."""

    @property
    def load(self) -> str:
        """``8`` requests in flight, or ``2.5/s``."""
        return f"{self.concurrency}" if self.request_rate is None else f"{self.request_rate:g}/s"


@dataclass(frozen=True)
class Throttle:
    """One throttle of one card."""

    gpu: int
    kind: ThrottleKind
    began_s: float
    ended_s: float
    reasons: tuple[str, ...] = ()
    peak_temperature_celsius: float | None = None
    lowest_sm_clock_mhz: float | None = None
    is_over: bool = True
    """``False``: it had not ended when the recording did."""


@dataclass(frozen=True)
class Found:
    """Something worth a look: a finding, a lost card, a failed server, a notice."""

    at_s: float
    severity: Severity
    kind: str
    subject: str = ""
    message: str = ""
    first_check: str = ""
    line: int | None = None
    """Of ``server.log``."""

    @property
    def is_error(self) -> bool:
        """It is marked in the charts."""
        return self.severity in (Severity.ERROR, Severity.CRITICAL)


@dataclass
class Story:
    """All of it, in the order of time."""

    windows: list[Window] = field(default_factory=list)
    throttles: list[Throttle] = field(default_factory=list)
    findings: list[Found] = field(default_factory=list)

    @property
    def alarms(self) -> list[Throttle]:
        """The throttles that are not a power cap."""
        return [throttle for throttle in self.throttles if throttle.kind.is_alarm]


def read_story(reader: SessionReader, end_s: float) -> Story:
    """Read what happened.

    Args:
        reader: of the session.
        end_s: when the recording ends, which is the end of what has none.

    Raises:
        RecordError: a file cannot be read.
    """
    fold = _Fold(end_s)
    for event in reader.told():
        fold.take(event)
    return fold.story(list(reader.steps()))


class _Fold:
    def __init__(self, end_s: float) -> None:
        self._end_s = end_s
        self._opened: dict[int, ev.StepBegan] = {}
        self._closed_s: dict[int, float] = {}
        self._open_step: int | None = None
        self._throttling: dict[tuple[int, ThrottleKind], ev.ThrottleBegan] = {}
        self._findings: dict[object, Found] = {}
        self._server_failed = False
        self._story = Story()

    def take(self, event: ev.Event) -> None:
        match event:
            case ev.StepBegan(step=step):
                self._opened[step] = event
                self._open_step = step
            case ev.LoadChanged(state=state, at=at) if state is not LoadState.RUNNING:
                if self._open_step is not None:
                    self._closed_s.setdefault(self._open_step, at)
                    self._open_step = None
            case ev.ThrottleBegan(gpu=gpu, kind=kind):
                self._throttling[gpu, kind] = event
            case ev.ThrottleEnded():
                self._end(event)
            case ev.Finding():
                self._find(event)
            case ev.Notice(at=at, severity=severity, text=text):
                self._note(Found(at_s=at, severity=severity, kind="notice", message=text))
            case ev.GpuReadFailed(at=at, gpu=gpu, lost=lost):
                self._note(
                    Found(
                        at_s=at,
                        severity=Severity.CRITICAL if lost else Severity.WARNING,
                        kind="gpu_lost" if lost else "gpu_read_failed",
                        subject=f"gpu:{gpu}",
                        message=f"{event.call}: {event.error}",
                    )
                )
            case ev.ServerChanged():
                self._server(event)
            case _:
                pass

    def story(self, results: Iterable[StepResult]) -> Story:
        story = self._story
        story.windows = self._windows({result.step: result for result in results})
        for began in self._throttling.values():
            story.throttles.append(_begun(began, self._end_s))
        story.throttles.sort(key=lambda throttle: (throttle.began_s, throttle.gpu))
        findings = sorted(self._findings.values(), key=lambda found: found.at_s)
        story.findings = [replace(found, message=_cut(found.message)) for found in findings]
        return story

    def _windows(self, results: dict[int, StepResult]) -> list[Window]:
        windows = []
        for step in sorted(self._opened.keys() | results.keys()):
            result, opened = results.get(step), self._opened.get(step)
            if result is not None:
                windows.append(
                    Window(
                        step=step,
                        concurrency=result.concurrency,
                        request_rate=result.request_rate,
                        opens_s=result.time_s,
                        closes_s=result.time_s + result.duration_s,
                        result=result,
                    )
                )
            elif opened is not None:
                windows.append(
                    Window(
                        step=step,
                        concurrency=None if opened.request_rate else opened.concurrency,
                        request_rate=opened.request_rate,
                        opens_s=opened.at,
                        closes_s=self._closed_s.get(step, self._end_s),
                    )
                )
        return sorted(windows, key=lambda window: window.opens_s)

    def _end(self, event: ev.ThrottleEnded) -> None:
        began = self._throttling.pop((event.gpu, event.kind), None)
        self._story.throttles.append(
            Throttle(
                gpu=event.gpu,
                kind=event.kind,
                began_s=event.began_at,
                ended_s=event.at,
                reasons=() if began is None else began.reasons,
                peak_temperature_celsius=event.peak_temperature_celsius,
                lowest_sm_clock_mhz=event.lowest_sm_clock_mhz,
            )
        )

    def _find(self, event: ev.Finding) -> None:
        if event.severity is Severity.INFO:
            return
        found = Found(
            at_s=event.at,
            severity=event.severity,
            kind=event.kind,
            subject=event.subject,
            message=event.message,
            first_check=event.first_check,
            line=event.line,
        )
        if event.line is None:
            self._note(found)
        else:  # more is known about the same line
            self._findings[event.source, event.line] = found

    def _note(self, found: Found) -> None:
        if found.severity is not Severity.INFO:
            self._findings[len(self._findings), found.kind] = found

    def _server(self, event: ev.ServerChanged) -> None:
        status = event.status
        has_failed = status.state in (ServerState.FAILED, ServerState.UNREACHABLE)
        if has_failed and not self._server_failed:
            self._note(
                Found(
                    at_s=event.at,
                    severity=Severity.CRITICAL
                    if status.state is ServerState.FAILED
                    else Severity.ERROR,
                    kind="server_state",
                    message=": ".join(word for word in (status.state.value, status.detail) if word),
                )
            )
        self._server_failed = has_failed


def _cut(message: str) -> str:
    is_long = len(message) > MESSAGE_CHARACTERS
    return f"{message[:MESSAGE_CHARACTERS]} …" if is_long else message


def _begun(event: ev.ThrottleBegan, end_s: float) -> Throttle:
    """A throttle whose end was not recorded, and with it what it reached."""
    return Throttle(
        gpu=event.gpu,
        kind=event.kind,
        began_s=event.at,
        ended_s=max(end_s, event.at),
        reasons=event.reasons,
        is_over=False,
    )


def shown_span(story: Story, end_s: float) -> tuple[float, float]:
    """The stretch that the charts show: the load, every throttle for heat or power brake, and
    every error, with some time around them; the whole session where there is none of these.

    A server that stood idle for days does not squeeze the minutes that matter into a line.
    """
    moments = [
        *(moment for window in story.windows for moment in (window.opens_s, window.closes_s)),
        *(moment for one in story.alarms for moment in (one.began_s, one.ended_s)),
        *(found.at_s for found in story.findings if found.is_error),
    ]
    moments = [moment for moment in moments if math.isfinite(moment)]
    if not moments:
        return 0.0, max(end_s, 1.0)
    around = max(10.0, 0.04 * (max(moments) - min(moments)))
    start = max(0.0, min(moments) - around)
    end = min(max(end_s, max(moments)), max(moments) + around)
    return start, max(end, start + 1.0)
