"""The store: events folded into one state with its history.

The agent folds every event; a viewer gets the agent's store as a snapshot and goes on folding
the same events, and a replay folds those of a session folder. So each of them shows the same
facts, and nothing but :meth:`Store.fold` changes a store.

History is bounded: one point a second for an hour, the newest lines, findings and steps. A point
keeps the extremes of its second, so that a chart never hides a peak.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from gpu_dash.model import events as ev
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuInfo, GpuProcess, GpuSample, GpuSourceState, ThrottleKind
from gpu_dash.model.load import LoadState, Outcome, StepResult
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.model.offered import highest, lowest
from gpu_dash.model.server import ServerMetrics, ServerState, ServerStatus

HISTORY_SECONDS = 3600
LOG_LINES = 5000
FINDINGS = 500
STEPS = 500
MARKS = 500

T = TypeVar("T")


class GpuPoint(msgspec.Struct, array_like=True, omit_defaults=True):
    """One second of one card, with its extremes."""

    at: float
    temperature_celsius: float | None = None
    """The highest of the second."""
    power_watts: float | None = None
    """The highest of the second."""
    sm_clock_mhz: float | None = None
    """The lowest of the second."""
    utilization_percent: float | None = None


class LoadPoint(msgspec.Struct, array_like=True, omit_defaults=True):
    """One second of our own load."""

    at: float
    seconds: float = 0.0
    """Time that the ticks in this point cover."""
    output_tokens: int = 0
    in_flight: int = 0
    """The highest of the second."""
    ttft_s: float | None = None
    """The highest of the ticks' medians."""
    requests_failed: int = 0

    @property
    def output_tokens_per_s(self) -> float:
        """Throughput of this second."""
        return self.output_tokens / self.seconds if self.seconds > 0 else 0.0


class ServerPoint(msgspec.Struct, array_like=True, omit_defaults=True):
    """One reading of the server's metrics, with what was generated since the one before."""

    at: float
    generation_tokens_per_s: float | None = None
    running_requests: int | None = None
    waiting_requests: int | None = None
    kv_cache_usage: float | None = None


class ThrottleSpan(msgspec.Struct, omit_defaults=True):
    """A card throttled from ``began_at`` to ``ended_at``; still does when that is ``None``."""

    gpu: int
    kind: ThrottleKind
    began_at: float
    ended_at: float | None = None
    reasons: tuple[str, ...] = ()
    temperature_celsius: float | None = None
    lowest_sm_clock_mhz: float | None = None


class StepMark(msgspec.Struct, omit_defaults=True):
    """Where a step's window opened, for the charts."""

    step: int
    concurrency: int
    opened_at: float
    closed_at: float | None = None
    request_rate: float | None = None


class LogMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happened beside the log, and where in it: between the line ``after_line`` and the
    next."""

    after_line: int
    event: ev.ThrottleBegan | ev.ThrottleEnded | ev.Finding


class GpuTrack(msgspec.Struct, omit_defaults=True):
    """One card: what it is, what it says now, and where it comes from."""

    info: GpuInfo
    latest: GpuSample | None = None
    latest_at: float | None = None
    lost: str = ""
    """Why the card no longer answers; empty while it does."""
    throttles: dict[ThrottleKind, ThrottleSpan] = {}
    """What throttles it now, by kind."""
    history: list[GpuPoint] = []

    @property
    def worst_throttle(self) -> ThrottleSpan | None:
        """The most alarming of the throttles that go on now."""
        for kind in ThrottleKind:
            if kind in self.throttles:
                return self.throttles[kind]
        return None


class Store(msgspec.Struct, omit_defaults=True):
    """All that is known at one moment; a snapshot is this struct as msgpack."""

    now: float = 0.0
    """Moment of the newest event."""
    session: str = ""
    session_folder: str = ""
    session_label: str = ""
    session_ended: bool = False
    anchor: ClockAnchor | None = None
    gpu_source: str = ""
    gpu_state: GpuSourceState = GpuSourceState.STARTING
    gpu_detail: str = ""
    gpu_state_at: float = 0.0
    gpu_event_sources: tuple[str, ...] = ()
    gpu_event_sources_missing: tuple[str, ...] = ()
    gpu_processes: tuple[GpuProcess, ...] = ()
    gpu_processes_detail: str = ""
    """What keeps the processes from being matched to the server."""
    gpus: dict[int, GpuTrack] = {}
    throttle_spans: list[ThrottleSpan] = []
    server: ServerStatus = ServerStatus()
    metrics: ServerMetrics | None = None
    metrics_at: float | None = None
    server_history: list[ServerPoint] = []
    load: ev.LoadChanged | None = None
    tick: ev.LoadTick | None = None
    load_history: list[LoadPoint] = []
    requests_ok: int = 0
    requests_failed: int = 0
    retries: int = 0
    """Attempts at requests beyond the first ones."""
    steps: list[StepResult] = []
    step_marks: list[StepMark] = []
    log: list[LogLine] = []
    log_lines_total: int = 0
    log_lines_dropped: int = 0
    log_marks: list[LogMark] = []
    log_marks_total: int = 0
    findings: list[ev.Finding] = []
    notices: list[ev.Notice] = []

    def fold(self, event: ev.Event) -> None:
        """Take one event into the state."""
        if event.at > self.now:
            self.now = event.at
        _FOLDS[type(event)](self, event)

    def gpu_tracks(self) -> list[GpuTrack]:
        """The cards by their index."""
        return [self.gpus[index] for index in sorted(self.gpus)]

    # -- session -------------------------------------------------------------------------------

    def _session_began(self, event: ev.SessionBegan) -> None:
        self.session = event.session
        self.session_folder = event.folder
        self.session_label = event.label
        self.session_ended = False
        self.anchor = event.anchor
        self.metrics = None
        self.metrics_at = None
        self.tick = None
        self.steps = []
        self.log = []
        self.log_lines_total = 0
        self.log_lines_dropped = 0
        self.log_marks = []
        self.log_marks_total = 0
        self.requests_ok = 0
        self.requests_failed = 0
        self.retries = 0

    def _session_ended(self, event: ev.SessionEnded) -> None:
        if event.session == self.session:
            self.session_ended = True

    def _notice(self, event: ev.Notice) -> None:
        _append(self.notices, event, FINDINGS)

    # -- GPUs ----------------------------------------------------------------------------------

    def _gpu_source(self, event: ev.GpuSourceChanged) -> None:
        self.gpu_source = event.source
        self.gpu_state = event.state
        self.gpu_detail = event.detail
        self.gpu_state_at = event.at
        if event.state in (GpuSourceState.FAILED, GpuSourceState.NONE):
            self.gpu_processes, self.gpu_processes_detail = (), ""
        if event.state is GpuSourceState.LIVE:
            self.gpu_event_sources = event.event_sources
            self.gpu_event_sources_missing = event.event_sources_missing
        if event.gpus:
            known = {info.gpu for info in event.gpus}
            self.gpus = {gpu: track for gpu, track in self.gpus.items() if gpu in known}
        for info in event.gpus:
            track = self.gpus.get(info.gpu)
            if track is None:
                self.gpus[info.gpu] = GpuTrack(info=info)
            else:
                track.info = info

    def _gpu_samples(self, event: ev.GpuSamples) -> None:
        for sample in event.samples:
            track = self.gpus.get(sample.gpu)
            if track is None:
                track = self.gpus[sample.gpu] = GpuTrack(
                    info=GpuInfo(gpu=sample.gpu, name=f"GPU {sample.gpu}")
                )
            track.latest = sample
            track.latest_at = event.at
            track.lost = ""
            history = track.history
            if history and int(history[-1].at) == int(event.at):
                _widen(history[-1], sample)
            else:
                point = GpuPoint(at=event.at)
                _widen(point, sample)
                _append(history, point, HISTORY_SECONDS)

    def _gpu_processes(self, event: ev.GpuProcesses) -> None:
        self.gpu_processes = event.processes
        self.gpu_processes_detail = event.detail

    def _gpu_failed(self, event: ev.GpuReadFailed) -> None:
        track = self.gpus.get(event.gpu)
        if track is None:
            track = self.gpus[event.gpu] = GpuTrack(
                info=GpuInfo(gpu=event.gpu, name=f"GPU {event.gpu}")
            )
        if event.lost:
            track.lost = event.error

    def _throttle_began(self, event: ev.ThrottleBegan) -> None:
        span = ThrottleSpan(
            gpu=event.gpu,
            kind=event.kind,
            began_at=event.at,
            reasons=event.reasons,
            temperature_celsius=event.temperature_celsius,
            lowest_sm_clock_mhz=event.sm_clock_mhz,
        )
        track = self.gpus.get(event.gpu)
        if track is not None:
            track.throttles[event.kind] = span
        _append(self.throttle_spans, span, MARKS)
        self._mark_log(event)

    def _throttle_ended(self, event: ev.ThrottleEnded) -> None:
        track = self.gpus.get(event.gpu)
        if track is not None:
            track.throttles.pop(event.kind, None)
        for span in reversed(self.throttle_spans):
            if span.gpu == event.gpu and span.kind is event.kind and span.ended_at is None:
                span.ended_at = event.at
                span.temperature_celsius = event.peak_temperature_celsius
                span.lowest_sm_clock_mhz = event.lowest_sm_clock_mhz
                break
        self._mark_log(event)

    # -- server --------------------------------------------------------------------------------

    def _server(self, event: ev.ServerChanged) -> None:
        self.server = event.status
        if event.status.state in (ServerState.STARTING, ServerState.STOPPED, ServerState.FAILED):
            self.metrics = None
            self.metrics_at = None

    def _metrics(self, event: ev.ServerMetricsRead) -> None:
        new = event.metrics
        rate = None
        if self.metrics is not None and self.metrics_at is not None:
            before, now = self.metrics.generation_tokens_total, new.generation_tokens_total
            elapsed = event.at - self.metrics_at
            if before is not None and now is not None and now >= before and elapsed > 0:
                rate = (now - before) / elapsed
        _append(
            self.server_history,
            ServerPoint(
                at=event.at,
                generation_tokens_per_s=rate,
                running_requests=new.running_requests,
                waiting_requests=new.waiting_requests,
                kv_cache_usage=new.kv_cache_usage,
            ),
            HISTORY_SECONDS,
        )
        self.metrics = new
        self.metrics_at = event.at

    def _log(self, event: ev.LogLines) -> None:
        self.log.extend(event.lines)
        self.log_lines_total += len(event.lines) + event.dropped
        self.log_lines_dropped += event.dropped
        if len(self.log) > LOG_LINES * 5 // 4:
            del self.log[: len(self.log) - LOG_LINES]

    def _finding(self, event: ev.Finding) -> None:
        if event.line is None:
            self._mark_log(event)
        else:
            for index in range(len(self.findings) - 1, -1, -1):
                known = self.findings[index]
                if (known.source, known.line) == (event.source, event.line):
                    self.findings[index] = event
                    return
        _append(self.findings, event, FINDINGS)

    def _mark_log(self, event: ev.ThrottleBegan | ev.ThrottleEnded | ev.Finding) -> None:
        after_line = self.log[-1].number if self.log else 0
        _append(self.log_marks, LogMark(after_line=after_line, event=event), MARKS)
        self.log_marks_total += 1

    # -- load ----------------------------------------------------------------------------------

    def _load(self, event: ev.LoadChanged) -> None:
        self.load = event
        marks = self.step_marks
        if marks and marks[-1].closed_at is None and event.state is not LoadState.RUNNING:
            marks[-1].closed_at = event.at

    def _tick(self, event: ev.LoadTick) -> None:
        self.tick = event
        history = self.load_history
        if not history or int(history[-1].at) != int(event.at):
            _append(history, LoadPoint(at=event.at), HISTORY_SECONDS)
        point = history[-1]
        point.seconds += event.interval_s
        point.output_tokens += event.output_tokens
        point.in_flight = max(point.in_flight, event.in_flight)
        point.requests_failed += event.requests_failed
        point.ttft_s = highest((point.ttft_s, event.ttft_p50_s))

    def _step_began(self, event: ev.StepBegan) -> None:
        if self.step_marks and self.step_marks[-1].closed_at is None:
            self.step_marks[-1].closed_at = event.at
        _append(
            self.step_marks,
            StepMark(
                step=event.step,
                concurrency=event.concurrency,
                request_rate=event.request_rate,
                opened_at=event.at,
            ),
            MARKS,
        )

    def _requests(self, event: ev.RequestsEnded) -> None:
        for request in event.requests:
            self.retries += request.retries
            if request.outcome is Outcome.OK:
                self.requests_ok += 1
            elif request.outcome is not Outcome.CANCELLED:
                self.requests_failed += 1

    def _step_ended(self, event: ev.StepEnded) -> None:
        _append(self.steps, event.result, STEPS)


_FOLDS: dict[type, Callable[[Store, Any], None]] = {
    ev.SessionBegan: Store._session_began,
    ev.SessionEnded: Store._session_ended,
    ev.Notice: Store._notice,
    ev.GpuSourceChanged: Store._gpu_source,
    ev.GpuSamples: Store._gpu_samples,
    ev.GpuProcesses: Store._gpu_processes,
    ev.GpuReadFailed: Store._gpu_failed,
    ev.ThrottleBegan: Store._throttle_began,
    ev.ThrottleEnded: Store._throttle_ended,
    ev.ServerChanged: Store._server,
    ev.ServerMetricsRead: Store._metrics,
    ev.LogLines: Store._log,
    ev.Finding: Store._finding,
    ev.LoadChanged: Store._load,
    ev.LoadTick: Store._tick,
    ev.StepBegan: Store._step_began,
    ev.RequestsEnded: Store._requests,
    ev.StepEnded: Store._step_ended,
}


def _append(items: list[T], item: T, limit: int) -> None:
    """Append and forget the oldest, in strides so that it stays cheap."""
    items.append(item)
    if len(items) > limit * 5 // 4:
        del items[: len(items) - limit]


def _widen(point: GpuPoint, sample: GpuSample) -> None:
    point.temperature_celsius = highest((point.temperature_celsius, sample.temperature_celsius))
    point.power_watts = highest((point.power_watts, sample.power_watts))
    point.sm_clock_mhz = lowest((point.sm_clock_mhz, sample.sm_clock_mhz))
    if sample.utilization_percent is not None:
        point.utilization_percent = sample.utilization_percent


def is_loud(finding: ev.Finding) -> bool:
    """Whether a finding asks for a person's look now."""
    return finding.severity in (Severity.ERROR, Severity.CRITICAL)
