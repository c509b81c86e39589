"""Events: the one road on which samples, log lines, metrics and results travel.

A source (sampler, load worker, supervisor, log reader) makes an event and stamps it with the
monotonic moment at which the thing happened (``at``). The agent gives it a sequence number,
folds it into the store, hands it to the recorder and sends it to the viewers. Replay, demo,
tests and screenshots put their events on the same road.
"""

from __future__ import annotations

import msgspec

from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuInfo, GpuProcess, GpuSample, GpuSourceState, ThrottleKind
from gpu_dash.model.load import LoadMode, LoadPlan, LoadState, RequestRecord, StepResult
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.model.server import ServerMetrics, ServerStatus


class _Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    at: float
    """Monotonic moment at which it happened."""


# -- session -----------------------------------------------------------------------------------


class SessionBegan(_Fact, frozen=True, kw_only=True):
    """A launch or an attachment began, and with it a session folder."""

    session: str
    folder: str
    anchor: ClockAnchor
    label: str = ""
    profile: str = ""
    gpu_source: str = ""


class SessionEnded(_Fact, frozen=True, kw_only=True):
    """The server of this session ended; the folder is complete."""

    session: str


class Notice(_Fact, frozen=True, kw_only=True):
    """Something about gpu-dash itself that a person must know: a disk that is full, a source
    that is gone, a key that is missing."""

    severity: Severity
    text: str


# -- GPUs --------------------------------------------------------------------------------------


class GpuSourceChanged(_Fact, frozen=True, kw_only=True):
    """The state of the readings as a whole, and which cards there are."""

    source: str
    """``nvml``, ``amd``, ``sim`` or ``none``."""
    state: GpuSourceState
    detail: str = ""
    """In words, with what to do, when the state is not ``live``."""
    gpus: tuple[GpuInfo, ...] = ()
    event_sources: tuple[str, ...] = ()
    """Where XIDs and resets are heard: ``nvml``, ``/dev/kmsg``, ``journal``."""
    event_sources_missing: tuple[str, ...] = ()
    """Where they cannot be heard, each with the reason."""


class GpuSamples(_Fact, frozen=True, kw_only=True):
    """One sweep over all cards that answered."""

    samples: tuple[GpuSample, ...]


class GpuProcesses(_Fact, frozen=True, kw_only=True):
    """The processes on all cards, when they have changed."""

    processes: tuple[GpuProcess, ...]
    detail: str = ""
    """What keeps them from being matched to a server; mostly nothing."""


class GpuReadFailed(_Fact, frozen=True, kw_only=True):
    """A card that should answer did not: fallen off the bus, no permission."""

    gpu: int
    call: str
    error: str
    lost: bool = False
    """True: the driver says that the card is gone."""


class ThrottleBegan(_Fact, frozen=True, kw_only=True):
    """A card began to throttle."""

    gpu: int
    kind: ThrottleKind
    reasons: tuple[str, ...]
    temperature_celsius: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None


class ThrottleEnded(_Fact, frozen=True, kw_only=True):
    """A card no longer throttles."""

    gpu: int
    kind: ThrottleKind
    began_at: float
    peak_temperature_celsius: float | None = None
    lowest_sm_clock_mhz: float | None = None


# -- server ------------------------------------------------------------------------------------


class ServerChanged(_Fact, frozen=True, kw_only=True):
    """The server's whole status after a change of state, stage or detail."""

    status: ServerStatus


class ServerMetricsRead(_Fact, frozen=True, kw_only=True):
    """One reading of the server's ``/metrics``."""

    metrics: ServerMetrics


class LogLines(_Fact, frozen=True, kw_only=True):
    """Lines of the server's log, in order."""

    lines: tuple[LogLine, ...]
    dropped: int = 0
    """Lines in front of these that a viewer is not sent because they came too fast; the file has
    them all."""


class Finding(_Fact, frozen=True, kw_only=True):
    """Something worth a person's look: an NCCL error, an XID, a throttle, a crash."""

    kind: str
    severity: Severity
    source: str
    """``log``, ``gpu``, ``server``, ``load`` or ``kernel``."""
    subject: str = ""
    """Which card, rank or process: ``gpu:3``, ``rank:1``, ``tp:0``."""
    message: str = ""
    first_check: str = ""
    line: int | None = None
    """Line of the log, where it came from there. A later finding of the same source with the same
    line replaces the earlier one: more is known about it."""
    root: bool = True
    """The cause, as far as it is known; ``False``: it followed from another finding."""
    count: int = 1
    """How many times it was said; repeats are folded into the first."""
    checks: tuple[str, ...] = ()
    """What to look at, in order, when the first check did not settle it."""


# -- load --------------------------------------------------------------------------------------


class LoadChanged(_Fact, frozen=True, kw_only=True):
    """The load's state after a change."""

    state: LoadState
    mode: LoadMode = LoadMode.NONE
    concurrency: int = 0
    """What is asked for now; 0 in an open loop."""
    request_rate: float | None = None
    """Requests per second that an open loop asks for."""
    step: int = 0
    window_opens_at: float | None = None
    """Monotonic; while warming up it is the earliest moment."""
    window_closes_at: float | None = None
    plan: LoadPlan | None = None
    """The ramp that runs or that ``r`` would start."""
    detail: str = ""


class LoadTick(_Fact, frozen=True, kw_only=True):
    """What the workers did since their last tick, a few times a second."""

    in_flight: int
    interval_s: float
    output_tokens: int
    """Tokens that arrived in this interval (chunks until ``usage`` says better)."""
    requests_ok: int = 0
    requests_failed: int = 0
    ttft_p50_s: float | None = None
    """Over the first tokens that arrived in this interval; ``None`` if none did."""
    itl_p50_s: float | None = None
    loop_lag_s: float = 0.0
    """The worst lateness of the worker's own timer in this interval."""
    cpu_percent: float = 0.0
    """CPU of the load workers, percent of one core."""
    path: str = ""
    """Which client path is in use."""
    send_lag_p99_s: float | None = None
    """Over the requests sent in this interval: how much later than due they were sent."""
    client_bound: bool = False
    """The client is at its limit now: what it measures is partly its own."""


class StepBegan(_Fact, frozen=True, kw_only=True):
    """The window of a step opened."""

    step: int
    concurrency: int
    """0 in an open loop."""
    first_sent_at: float
    request_rate: float | None = None


class RequestsEnded(_Fact, frozen=True, kw_only=True):
    """Requests that ended since the last such event."""

    requests: tuple[RequestRecord, ...]
    gaps: dict[int, int] = {}
    """Gaps between tokens of the counted ones: bucket of the log-linear histogram to count."""


class StepEnded(_Fact, frozen=True, kw_only=True):
    """All requests of a step have ended and its result is known."""

    result: StepResult


Event = (
    SessionBegan
    | SessionEnded
    | Notice
    | GpuSourceChanged
    | GpuSamples
    | GpuProcesses
    | GpuReadFailed
    | ThrottleBegan
    | ThrottleEnded
    | ServerChanged
    | ServerMetricsRead
    | LogLines
    | Finding
    | LoadChanged
    | LoadTick
    | StepBegan
    | RequestsEnded
    | StepEnded
)
