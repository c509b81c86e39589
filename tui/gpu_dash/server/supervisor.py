"""The life of one server as events: starting, ready, unreachable, stopping, stopped, failed.

The end is noticed by the handle, readiness by ``/health``, the stages in between by the log's
lines. An exit code of 0 does not mean that the server was asked to stop: vLLM leaves with 0 when
its engine has died. Only our own record of having asked makes an end a stop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from gpu_dash.model.clock import Clock
from gpu_dash.model.events import Event, Finding, Notice, ServerChanged, ServerMetricsRead
from gpu_dash.model.log import Severity
from gpu_dash.model.server import HandleKind, ServerState, ServerStatus
from gpu_dash.server.endpoint import EndpointProbe
from gpu_dash.server.handles import FORCE_MARGIN_S, STARTING_GRACE_S, ServerHandle, Stopped
from gpu_dash.server.last_words import LastWords, describe_exit
from gpu_dash.server.metrics import parse_metrics
from gpu_dash.server.stages import SILENCE_S, WAITS, Wait, stage_of
from gpu_dash.server.start_times import StageTimer, StartTimes

STARTING_POLL_S = 0.5
READY_POLL_S = 1.0
MISSES_UNTIL_UNREACHABLE = 3
TOLD_AFTER_S = 0.5


class ServerSupervisor:
    """Watches one server until it ends.

    Args:
        handle: what is supervised.
        probe: its HTTP surface.
        status: what is known at the start (profile, model, URL, state).
        on_event: takes the events.
        drain_log: waits until the log has been read to its end, so that a failure can be told
            with the error that caused it.
        clock: where ``at`` comes from.
        ready_timeout_s: a start that takes longer has failed.
        shutdown_timeout_s: what the server itself gives to open requests.
        last_start: how long the stages of the last start took.
        on_started: takes the times of this one when the server is ready.
    """

    def __init__(
        self,
        handle: ServerHandle,
        probe: EndpointProbe,
        status: ServerStatus,
        on_event: Callable[[Event], None],
        drain_log: Callable[[], Awaitable[None]],
        clock: Clock,
        *,
        ready_timeout_s: float,
        shutdown_timeout_s: float,
        last_start: StartTimes | None = None,
        on_started: Callable[[StartTimes], None] | None = None,
    ) -> None:
        self.status = status
        self._handle = handle
        self._probe = probe
        self._on_event = on_event
        self._drain_log = drain_log
        self._clock = clock
        self._ready_timeout_s = ready_timeout_s
        self._shutdown_timeout_s = shutdown_timeout_s
        self._launched_at = self._heard_at = status.since
        self._last_start = last_start or StartTimes()
        self._on_started = on_started
        self._timer = StageTimer()
        self._last_words = LastWords()
        self._stop_asked = False
        self._stop_over = asyncio.Event()
        self._misses = 0

    @property
    def has_ended(self) -> bool:
        """Whether the server is gone for good."""
        return self.status.state in (ServerState.STOPPED, ServerState.FAILED)

    async def run(self) -> None:
        """Watch the server until it has ended (for an external one: until cancelled)."""
        self._change(ready_expected_s=self._last_start.ready_s)
        polling = asyncio.create_task(self._poll())
        try:
            exit_code = await self._handle.wait()
        finally:
            polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await polling
            await self._probe.close()
        if self._stop_asked:
            # Its leader has ended; the stop is over when nothing else of it is left either.
            await self._stop_over.wait()
        else:
            await self._failed(exit_code)

    async def stop(self) -> Stopped:
        """Ask the server to end and wait until nothing of it is left."""
        starting = self.status.state is ServerState.STARTING
        self._stop_asked = True
        self._change(state=ServerState.STOPPING, stage="", stage_progress=None)
        grace_s = STARTING_GRACE_S if starting else self._shutdown_timeout_s + FORCE_MARGIN_S
        try:
            stopped = await self._handle.stop(starting=starting, grace_s=grace_s)
            leftovers = ", ".join(map(str, stopped.leftovers))
            detail = f"still in the driver after SIGKILL: pid {leftovers}" if leftovers else ""
            if self._handle.kind is HandleKind.EXTERNAL:
                detail = "no longer watched; it is not ours and goes on"
            self._change(state=ServerState.STOPPED, exit_code=stopped.exit_code, detail=detail)
        finally:
            self._stop_over.set()
        return stopped

    def take_line(self, text: str) -> None:
        """A line of the log: while the server starts it may begin a stage."""
        self._last_words.take_line(text)
        self._heard_at = self._clock.monotonic()
        if self.status.state is not ServerState.STARTING:
            return
        if self.status.quiet_since is not None:
            self._change(quiet_since=None)
        stage = stage_of(text)
        if stage is None:
            return
        if stage.name != self.status.stage:
            self._change(
                stage=stage.name,
                stage_since=self._clock.monotonic(),
                stage_progress=stage.progress,
                stage_expected_s=self._last_start.stages.get(stage.name),
            )
        elif stage.progress != self.status.stage_progress:
            self._change(stage_progress=stage.progress)

    def take_finding(self, finding: Finding) -> None:
        """What was found in the log: of an end that nobody asked for it may be the cause."""
        self._last_words.take_finding(finding)

    # -- inner ---------------------------------------------------------------------------------

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await self._poll_once()
            starting = self.status.state is ServerState.STARTING
            due = max(due + (STARTING_POLL_S if starting else READY_POLL_S), loop.time())
            await asyncio.sleep(due - loop.time())

    async def _poll_once(self) -> None:
        trouble = await self._probe.trouble()
        healthy = not trouble
        if not healthy and self._handle.kind is HandleKind.EXTERNAL:
            healthy = await self._probe.is_reachable()
        state = self.status.state
        if state is ServerState.STARTING:
            if healthy:
                elapsed = self._clock.monotonic() - self._launched_at
                self._change(
                    state=ServerState.READY,
                    version=await self._probe.version(),
                    ready_after_s=elapsed,
                    stage="",
                    stage_progress=None,
                    stage_expected_s=None,
                    quiet_since=None,
                )
            elif self._clock.monotonic() - self._launched_at > self._ready_timeout_s:
                self._last_words.give_up(f"not ready after {self._ready_timeout_s:g} s")
                await self._handle.stop(starting=True, grace_s=STARTING_GRACE_S)
            else:
                self._note_silence()
        elif state in (ServerState.READY, ServerState.UNREACHABLE):
            self._misses = 0 if healthy else self._misses + 1
            if healthy and state is ServerState.UNREACHABLE:
                version = self.status.version or await self._probe.version()
                self._change(state=ServerState.READY, version=version, detail="")
            elif self._misses == MISSES_UNTIL_UNREACHABLE and state is ServerState.READY:
                self._change(state=ServerState.UNREACHABLE, detail=trouble)
            if healthy:
                await self._read_metrics()

    def _note_silence(self) -> None:
        """Say once per silence what a start that says nothing waits for."""
        now, stage = self._clock.monotonic(), self.status.stage
        wait = WAITS.get(stage, Wait(SILENCE_S, "the next line of its log"))
        if self.status.quiet_since is not None or now - self._heard_at < wait.silence_s:
            return
        self._change(quiet_since=self._heard_at)
        text = (
            f"{stage or 'starting'}: no progress for {now - self._heard_at:.0f} s; it waits for "
            f"{wait.on}"
        )
        self._on_event(Notice(at=now, severity=Severity.WARNING, text=text))

    async def _read_metrics(self) -> None:
        page = await self._probe.metrics_page()
        if page is None:
            return
        try:
            metrics = parse_metrics(page)
        except ValueError:
            # Another program's page at that path: no metrics is all there is to say.
            return
        self._on_event(ServerMetricsRead(at=self._clock.monotonic(), metrics=metrics))

    async def _failed(self, exit_code: int | None) -> None:
        leftovers = await self._cleared(exit_code)
        await self._drain_log()
        detail, first_check = self._last_words.of_end(exit_code)
        if leftovers:
            detail += f" (still in the driver after SIGKILL: {', '.join(map(str, leftovers))})"
        self._change(
            state=ServerState.FAILED,
            exit_code=exit_code,
            detail=detail,
            stage="",
            stage_progress=None,
        )
        self._on_event(
            Finding(
                at=self._clock.monotonic(),
                kind="server_exit",
                severity=Severity.CRITICAL,
                source="server",
                message=detail,
                first_check=first_check,
            )
        )

    async def _cleared(self, exit_code: int | None) -> tuple[int, ...]:
        """End what is left of it; where that takes a while, its end is told before."""
        clearing = asyncio.ensure_future(self._handle.clear_leftovers())
        done, _ = await asyncio.wait((clearing,), timeout=TOLD_AFTER_S)
        if not done:
            text = f"the server is gone ({describe_exit(exit_code)}); ending what it left behind"
            self._on_event(Notice(at=self._clock.monotonic(), severity=Severity.ERROR, text=text))
        return await clearing

    def _change(self, **fields: Any) -> None:
        if "state" in fields and fields["state"] is not self.status.state:
            fields.setdefault("since", self._clock.monotonic())
        before, self.status = self.status, msgspec.structs.replace(self.status, **fields)
        now = self._clock.monotonic()
        self._on_event(ServerChanged(at=now, status=self.status))
        times = self._timer.take(before, self.status, now)
        if times is not None and self._on_started is not None:
            self._on_started(times)
