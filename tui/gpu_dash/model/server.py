"""What the agent supervises, and what it says of itself."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpu_dash.model.workers import Parallel


class ServerState(StrEnum):
    """The life of a supervised server."""

    NONE = "none"
    """No server was launched or attached."""
    STARTING = "starting"
    READY = "ready"
    UNREACHABLE = "unreachable"
    """The process lives (or is somebody else's) and ``/health`` does not answer 200."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    """It ended because we asked for it."""
    FAILED = "failed"
    """It ended, or did not come up, and we had not asked."""


class HandleKind(StrEnum):
    """How much of the server is ours."""

    PROCESS = "process"
    CONTAINER = "container"
    """Started, followed and stopped through the container's own command; no pid of ours."""
    EXTERNAL = "external"
    """Somebody else started it: watched and loaded, never started or stopped."""


class ProcessIdentity(msgspec.Struct, frozen=True):
    """A process that cannot be mistaken for a later one with the same pid."""

    pid: int
    start_ticks: int
    """Field 22 of ``/proc/PID/stat``: clock ticks since boot."""
    boot_id: str


class ServerMetrics(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reading of ``/metrics``, summed over engines. ``None``: the page does not have it."""

    running_requests: int | None = None
    waiting_requests: int | None = None
    kv_cache_usage: float | None = None
    """0 to 1."""
    prompt_tokens_total: float | None = None
    generation_tokens_total: float | None = None
    preemptions_total: float | None = None
    iterations_total: float | None = None
    """Engine steps: the heartbeat."""
    prefix_cache_queries_total: float | None = None
    prefix_cache_hits_total: float | None = None


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything about the server that a screen or a command shows."""

    state: ServerState = ServerState.NONE
    since: float = 0.0
    """Monotonic moment at which the state began."""
    kind: HandleKind = HandleKind.PROCESS
    profile: str = ""
    model: str = ""
    base_url: str = ""
    version: str = ""
    """What the server says of itself; empty while it is not known."""
    pid: int | None = None
    stage: str = ""
    """While starting: what it does, in words."""
    stage_since: float = 0.0
    stage_progress: float | None = None
    """0 to 1 where the log gives one (shards, graph capture)."""
    stage_expected_s: float | None = None
    """Seconds that this stage took in the profile's last start."""
    quiet_since: float | None = None
    """While starting: the log has said nothing since, longer than this stage is wont to be
    silent."""
    ready_expected_s: float | None = None
    """Seconds from launch to ready in the profile's last start."""
    ready_after_s: float | None = None
    """Seconds from the launch to ready."""
    exit_code: int | None = None
    detail: str = ""
    """For a failure: exit code and the last error in words."""
    visible_gpus: tuple[int, ...] | None = None
    """Host indexes of the cards that the server works on, by the rank of the worker; ``None``: not
    known, so all."""
    parallel: Parallel | None = None
    """How it spreads over them; ``None``: not known."""

    def workers_on(self, gpu: int) -> tuple[str, ...]:
        """Names of the workers on a card (``TP1``); several on a card in MIG mode, none if it is
        not known how the server spreads."""
        if self.visible_gpus is None or self.parallel is None:
            return ()
        return tuple(
            self.parallel.worker_name(rank)
            for rank, card in enumerate(self.visible_gpus)
            if card == gpu
        )
