"""A session: one launch of a server (or one attachment to a running one) until it ends.

It owns what belongs to that launch: supervisor, log follower, load, step accounting, recorder.
The sampler is the agent's and outlives it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gpu_dash.agent.hub import Hub
from gpu_dash.agent.server_cards import on_card
from gpu_dash.agent.state_file import SessionState
from gpu_dash.agent.steps import StepAccount
from gpu_dash.agent.stuck import StuckWatch
from gpu_dash.analysis.verdict import Verdict, not_judged
from gpu_dash.load.driver import LoadDriver
from gpu_dash.logs.follow import Batch, LogFollower
from gpu_dash.logs.heat import HeatHistory, advise, seconds_before
from gpu_dash.model.clock import Clock
from gpu_dash.model.errors import AgentError, ServerError
from gpu_dash.model.events import (
    Event,
    Finding,
    GpuSamples,
    GpuSourceChanged,
    LogLines,
    Notice,
    ServerChanged,
    SessionBegan,
    SessionEnded,
)
from gpu_dash.model.headers import Headers
from gpu_dash.model.load import LoadPlan, StepResult, Target
from gpu_dash.model.log import Severity
from gpu_dash.model.server import ServerState, ServerStatus
from gpu_dash.model.state_folder import state_root
from gpu_dash.record.meta import SessionMeta
from gpu_dash.record.recorder import Recorder
from gpu_dash.server.compose import ComposeHandle
from gpu_dash.server.endpoint import EndpointProbe
from gpu_dash.server.handles import (
    ContainerHandle,
    ServerHandle,
)
from gpu_dash.server.log_command import LogCommand
from gpu_dash.server.start_times import StartTimes, load_start_times, save_start_times
from gpu_dash.server.supervisor import ServerSupervisor

DRAIN_S = 5.0
HEAT_S = 1900.0
"""How far back the heat of the cards may explain a line of the log: NCCL gives up after 10
minutes, or 30."""
SERVER_LOG = "server.log"
KEEPER_STATUS = "keeper.json"


class Session:
    """What one launch owns. Made by :mod:`gpu_dash.agent.beginnings`.

    Args:
        hub: where its events go.
        clock: where ``at`` comes from.
        begun: the facts that the next agent would need.
        handle: what is supervised.
        api_key: in memory only.
        headers: of the requests; in memory only.
        meta: the head of ``session.toml``.
        ramp_when_ready: begin the ramp as soon as the server is ready.
    """

    def __init__(
        self,
        hub: Hub,
        clock: Clock,
        begun: SessionState,
        handle: ServerHandle,
        api_key: str | None,
        meta: SessionMeta,
        *,
        headers: Headers | None = None,
        ramp_when_ready: bool = False,
    ) -> None:
        self._hub = hub
        self._clock = clock
        self._begun = begun
        self._handle = handle
        self._ramp_when_ready = ramp_when_ready
        self.folder = Path(begun.folder)
        self.has_ended = False
        self._at_start: tuple[Event, ...] = ()
        """What was published before this session could record it."""
        self._ended = asyncio.Event()
        self._recorder = Recorder(self.folder, meta, self._record_notice)
        self._stuck = StuckWatch(begun.status.visible_gpus)
        self._heat = HeatHistory(HEAT_S)
        self._steps = StepAccount(begun.anchor, begun.status.visible_gpus, self._publish)
        self._load = LoadDriver(
            self._publish,
            self._steps.finish,
            clock,
            first_step=begun.next_step,
            first_request=begun.next_request,
            workers=begun.plan.workers,
        )
        target = Target(
            base_url=begun.status.base_url,
            model=begun.status.model,
            api_key=api_key,
            headers=headers or Headers(),
        )
        self._load.set_target(target)
        self._follower: LogFollower | None = None
        self._log_command = (
            LogCommand(begun.log_command, self.folder / SERVER_LOG) if begun.log_command else None
        )
        self._log_offset, self._log_lines = begun.log_offset, begun.log_lines
        self._supervisor = ServerSupervisor(
            handle,
            EndpointProbe(begun.status.base_url, api_key, target.headers),
            begun.status,
            self._publish,
            self._drain_log,
            clock,
            ready_timeout_s=begun.ready_timeout_s,
            shutdown_timeout_s=begun.shutdown_timeout_s,
            last_start=load_start_times(_start_times_path(), begun.status.profile),
            on_started=self._keep_start_times,
        )
        self._loop = asyncio.get_running_loop()

    # -- life ----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The session's name: its folder's."""
        return self._begun.session

    @property
    def began_at(self) -> float:
        """Monotonic moment of the launch."""
        return self._begun.anchor.monotonic

    @property
    def status(self) -> ServerStatus:
        """The server's status now."""
        return self._supervisor.status

    @property
    def simulated_url(self) -> str | None:
        """Where simulated cards can be read: the server itself, for the source ``sim``."""
        return self._begun.status.base_url if self._begun.gpu_source == "sim" else None

    def take_over(self, history: Sequence[Event], published: Sequence[Event]) -> None:
        """Go on where a killed agent stopped.

        Args:
            history: what it recorded.
            published: what was told of the take-over before this session could record it.
        """
        self._steps.restore(history)
        self._at_start = tuple(published)

    async def run(self) -> None:
        """Supervise until the server has ended, then complete the recording."""
        stop_listening = self._hub.listen(self._listen)
        for event in (session_began(self._begun), *self._at_start, self._gpus_now()):
            self._listen(event)
        try:
            if self._begun.log is not None:
                self._follower = LogFollower(Path(self._begun.log), self._batch_arrived)
                self._follower.start(self._log_offset, self._log_lines + 1)
            if (
                isinstance(self._handle, ContainerHandle | ComposeHandle)
                and self._begun.log is not None
            ):
                await self._handle.follow(Path(self._begun.log))
            if self._log_command is not None:
                await self._log_command.start()
            self._load.offer(self._begun.plan)
            warming = asyncio.create_task(self._warm_load())
            await self._supervisor.run()
            await warming
            await self._complete()
        finally:
            stop_listening()

    async def stop(self) -> None:
        """Stop the load, then the server, and wait until the recording is complete."""
        if not self._supervisor.has_ended:
            await self._load.stop()
            await self._supervisor.stop()
        await self._complete()

    async def leave(self) -> None:
        """End our part and leave the server alone: the next agent adopts it."""
        await self._load.close()
        if self._log_command is not None:
            await self._log_command.stop()
        if self._follower is not None:
            await asyncio.to_thread(self._follower.stop)
        await asyncio.to_thread(self._recorder.close)

    def state(self) -> SessionState:
        """What the next agent would need at this moment."""
        return msgspec.structs.replace(
            self._begun,
            status=self._supervisor.status,
            log_offset=self._log_offset,
            log_lines=self._log_lines,
            next_step=self._load.next_step,
            next_request=self._load.next_request,
        )

    def verdict(self) -> Verdict:
        """The three conditions over the steps so far; a server that failed, or a load that came
        to nothing, no condition can make good."""
        if self.status.state is ServerState.FAILED:
            return not_judged("the server failed")
        if not any(step.requests_ok for step in self._steps.results):
            return not_judged("no request of a finished step succeeded")
        return self._steps.verdict()

    def knee(self) -> StepResult | None:
        """The step from which more load gains little."""
        return self._steps.knee()

    @property
    def log(self) -> str | None:
        """Path of the server's log, where it is known."""
        return self._begun.log

    @property
    def rows_lost(self) -> int:
        """Rows that could not be written."""
        return self._recorder.rows_lost

    # -- load ----------------------------------------------------------------------------------

    def start_ramp(self, plan: LoadPlan | None) -> None:
        """Begin a ramp at its first step.

        Raises:
            ServerError: the server is not ready.
        """
        self._check_ready()
        self._load.start_ramp(plan or self._begun.plan)

    def set_concurrency(self, concurrency: int) -> None:
        """Change the load by hand.

        Raises:
            ServerError: the server is not ready.
        """
        self._check_ready()
        self._load.set_concurrency(concurrency)

    def set_rate(self, rate: float) -> None:
        """Change the load by hand to an open loop of so many requests per second.

        Raises:
            ServerError: the server is not ready.
            UsageError: no such rate can be sent.
        """
        self._check_ready()
        self._load.set_rate(rate)

    def pause_load(self) -> None:
        """Send nothing new."""
        self._load.pause()

    def resume_load(self) -> None:
        """Go on with the next step."""
        self._check_ready()
        self._load.resume()

    async def stop_load(self) -> None:
        """Cancel what is in flight and end the load."""
        await self._load.stop()

    # -- inner ---------------------------------------------------------------------------------

    async def _warm_load(self) -> None:
        """Start the load worker ahead of the first key. Without one the rest goes on; the first
        key tries again."""
        try:
            await self._load.start()
        except AgentError as error:
            notice = Notice(at=self._clock.monotonic(), severity=Severity.ERROR, text=str(error))
            self._publish(notice)

    def _keep_start_times(self, times: StartTimes) -> None:
        """For the estimate of the profile's next start; one that cannot be kept is no loss."""
        if self._begun.status.profile:
            with contextlib.suppress(OSError):
                save_start_times(_start_times_path(), self._begun.status.profile, times)

    def _gpus_now(self) -> GpuSourceChanged:
        """The cards as they are known when the session begins: the sampler said so before."""
        store = self._hub.store
        return GpuSourceChanged(
            at=self._clock.monotonic(),
            source=store.gpu_source,
            state=store.gpu_state,
            detail=store.gpu_detail,
            gpus=tuple(track.info for track in store.gpu_tracks()),
            event_sources=store.gpu_event_sources,
            event_sources_missing=store.gpu_event_sources_missing,
        )

    def _check_ready(self) -> None:
        state = self.status.state
        if state is not ServerState.READY:
            raise ServerError(f"the server is {state}; the load starts when it is ready")

    def _publish(self, event: Event) -> None:
        self._hub.publish(event)

    def _listen(self, event: Event) -> None:
        """Every event of the hub, the sampler's too, while this session goes on."""
        self._steps.take(event)
        self._recorder.record(event)
        if isinstance(event, GpuSamples):
            for sample in event.samples:
                self._heat.add(event.at, sample)
        stuck = self._stuck.take(event)
        if stuck is not None:
            # Not from within the event that told of it: all are to have that one first.
            self._loop.call_soon(self._publish, stuck)
        if (
            self._ramp_when_ready
            and isinstance(event, ServerChanged)
            and event.status.state is ServerState.READY
        ):
            self._ramp_when_ready = False
            self._load.start_ramp(self._begun.plan)

    def _batch_arrived(self, batch: Batch) -> None:
        """From the follower's thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._take_batch, batch)

    def _take_batch(self, batch: Batch) -> None:
        now = self._clock.monotonic()
        self._log_offset = batch.offset
        self._log_lines = batch.line_count
        if batch.trouble:
            self._publish(Notice(at=now, severity=Severity.ERROR, text=batch.trouble))
        if batch.restarted:
            self._publish(Notice(at=now, severity=Severity.WARNING, text=batch.restarted))
        if batch.unfinished is not None:
            self._supervisor.take_line(batch.unfinished.text)
        for line in batch.lines:
            self._supervisor.take_line(line.text)
        if batch.lines:
            self._publish(LogLines(at=now, lines=batch.lines))
        for finding in batch.findings:
            self._supervisor.take_finding(finding)
            self._publish(self._advised(finding))

    def _advised(self, finding: Finding) -> Finding:
        """A finding of the log with its card, and with what the cards did while it came about."""
        infos = [track.info for track in self._hub.store.gpu_tracks()]
        finding = on_card(finding, self.status, infos)
        before_s = seconds_before(finding)
        if before_s is None:
            return finding
        return advise(finding, self._heat.between(finding.at - before_s, finding.at))

    async def _drain_log(self) -> None:
        if self._log_command is not None:
            await self._log_command.finish()
        if self._follower is not None:
            follower, self._follower = self._follower, None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    await asyncio.to_thread(follower.stop)
            await asyncio.sleep(0)

    async def _complete(self) -> None:
        """The server has ended: end the load, complete the files, say so."""
        if self.has_ended:
            await self._ended.wait()
            return
        self.has_ended = True
        await self._load.close()
        await self._drain_log()
        self._publish(SessionEnded(at=self._clock.monotonic(), session=self.name))
        knee = self._steps.knee()
        self._recorder.finish(
            verdict=self.verdict(),
            exit_code=self._supervisor.status.exit_code,
            knee_concurrency=None if knee is None else knee.concurrency,
        )
        await asyncio.to_thread(self._recorder.close)
        self._ended.set()

    def _record_notice(self, text: str) -> None:
        """From the recorder's thread."""
        notice = Notice(at=self._clock.monotonic(), severity=Severity.ERROR, text=text)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._publish, notice)


def _start_times_path() -> Path:
    return state_root() / "start_times.json"


def session_began(begun: SessionState) -> SessionBegan:
    """The event with which a session begins, at its very first moment."""
    return SessionBegan(
        at=begun.anchor.monotonic,
        session=begun.session,
        folder=begun.folder,
        anchor=begun.anchor,
        label=begun.label,
        profile=begun.status.profile,
        gpu_source=begun.gpu_source,
    )
