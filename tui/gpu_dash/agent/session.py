"""A session: one launch of a server (or one attachment to a running one) until it ends.

It owns what belongs to that launch: supervisor, log follower, load, step accounting, recorder.
The sampler is the agent's and outlives it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from gpu_dash import __version__
from gpu_dash.agent.hub import Hub
from gpu_dash.agent.state_file import SessionState
from gpu_dash.agent.steps import StepAccount
from gpu_dash.analysis.verdict import Verdict
from gpu_dash.load.driver import LoadDriver
from gpu_dash.logs.follow import Batch, LogFollower
from gpu_dash.model.clock import Clock, ClockAnchor
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.duration import parse_duration
from gpu_dash.model.errors import GpuSourceError, ServerError
from gpu_dash.model.events import (
    Event,
    GpuSourceChanged,
    LogLines,
    Notice,
    RequestsEnded,
    ServerChanged,
    SessionBegan,
    SessionEnded,
)
from gpu_dash.model.gpu import GpuSourceState
from gpu_dash.model.load import LoadPlan, Target
from gpu_dash.model.log import Severity
from gpu_dash.model.server import HandleKind, ServerState, ServerStatus
from gpu_dash.record.folder import check_session_folder, new_session_folder
from gpu_dash.record.meta import SessionMeta
from gpu_dash.record.reader import SessionReader
from gpu_dash.record.recorder import Recorder
from gpu_dash.server.command_line import LaunchCommand, build_command, flag_arguments, gpus_of
from gpu_dash.server.endpoint import EndpointProbe, normalize_base_url
from gpu_dash.server.handles import (
    ContainerHandle,
    ContainerRecord,
    ExternalHandle,
    ProcessHandle,
    ServerHandle,
)
from gpu_dash.server.preflight import check_launch, free_port
from gpu_dash.server.processes import boot_id
from gpu_dash.server.supervisor import ServerSupervisor

GPU_SOURCE_S = 10.0
"""How long a source of readings may take to say what it has."""
DRAIN_S = 5.0
SERVER_LOG = "server.log"
KEEPER_STATUS = "keeper.json"

SetGpuSource = Callable[[str], Awaitable[None]]


class Session:
    """What one launch owns. Made by :meth:`launch`, :meth:`watch` or :meth:`adopt`.

    Args:
        hub: where its events go.
        clock: where ``at`` comes from.
        begun: the facts that the next agent would need.
        handle: what is supervised.
        api_key: in memory only.
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
        ramp_when_ready: bool = False,
    ) -> None:
        self._hub = hub
        self._clock = clock
        self._begun = begun
        self._handle = handle
        self._ramp_when_ready = ramp_when_ready
        self.folder = Path(begun.folder)
        self.has_ended = False
        self._ended = asyncio.Event()
        self._recorder = Recorder(self.folder, meta, self._record_notice)
        self._steps = StepAccount(begun.anchor, begun.status.visible_gpus, self._publish)
        self._load = LoadDriver(
            self._publish,
            self._steps.finish,
            clock,
            first_step=begun.next_step,
            first_request=begun.next_request,
        )
        self._load.set_target(
            Target(base_url=begun.status.base_url, model=begun.status.model, api_key=api_key)
        )
        self._follower: LogFollower | None = None
        self._log_offset, self._log_lines = begun.log_offset, begun.log_lines
        self._supervisor = ServerSupervisor(
            handle,
            EndpointProbe(begun.status.base_url, api_key),
            begun.status,
            self._publish,
            self._drain_log,
            clock,
            ready_timeout_s=begun.ready_timeout_s,
            shutdown_timeout_s=begun.shutdown_timeout_s,
        )
        self._loop = asyncio.get_running_loop()

    # -- the three ways to begin ---------------------------------------------------------------

    @classmethod
    async def launch(
        cls, hub: Hub, clock: Clock, command: Launch, set_gpu_source: SetGpuSource
    ) -> Session:
        """Start a server from a profile.

        Raises:
            UsageError: the profile, the pre-flight or the session folder says no.
            GpuSourceError: a source was asked for by name and is not usable.
            ServerError: the program could not be started.
        """
        profile, environment = command.profile, command.environment
        if not command.force:
            check_launch(profile, environment, command.folder)
        port = profile.server.port or free_port(profile.server.host)
        line = build_command(profile, environment, port)
        folder = _session_folder(command.session_folder, command.label or profile.name)
        source = command.gpu_source or profile.gpu.source
        await set_gpu_source(source)
        await _await_gpu_source(hub, source)
        anchor = ClockAnchor.now(clock)
        plan = command.plan or profile.plan()
        status = ServerStatus(
            state=ServerState.STARTING,
            since=anchor.monotonic,
            kind=profile.server.kind,
            profile=profile.name,
            model=line.model,
            base_url=line.base_url,
            visible_gpus=gpus_of(profile, environment, sorted(hub.store.gpus)),
        )
        begun = SessionState(
            session=folder.name,
            folder=str(folder),
            anchor=anchor,
            boot_id=boot_id(),
            label=command.label,
            gpu_source=source,
            plan=plan,
            status=status,
            api_key_env=profile.server.api_key_env,
            ready_timeout_s=parse_duration(profile.server.ready_timeout),
            shutdown_timeout_s=parse_duration(profile.server.shutdown_timeout),
            log=str(folder / SERVER_LOG),
        )
        hub.publish(_session_began(begun))
        meta = _meta_of(begun, line.argv, tuple(profile.server.env))
        try:
            if profile.server.kind is HandleKind.CONTAINER:
                handle, begun = await _launch_container(command, line, begun)
            else:
                handle, begun = await _launch_process(command, line, begun, folder)
        except ServerError as error:
            recorder = Recorder(folder, meta, lambda text: None)
            failed = msgspec.structs.replace(status, state=ServerState.FAILED, detail=str(error))
            for event in (
                ServerChanged(at=clock.monotonic(), status=failed),
                SessionEnded(at=clock.monotonic(), session=begun.session),
            ):
                hub.publish(event)
                recorder.record(event)
            await asyncio.to_thread(recorder.close)
            raise
        return cls(
            *(hub, clock, begun, handle, line.api_key, meta),
            ramp_when_ready=command.ramp_when_ready,
        )

    @classmethod
    async def watch(
        cls, hub: Hub, clock: Clock, command: Watch, set_gpu_source: SetGpuSource
    ) -> Session:
        """Watch and load a server that somebody else started.

        Raises:
            UsageError: the URL or the session folder is wrong.
            ServerError: no model was named and the server does not name its own.
        """
        base_url = normalize_base_url(command.base_url)
        model = command.model
        if model is None:
            probe = EndpointProbe(base_url, command.api_key)
            try:
                models = await probe.models()
            finally:
                await probe.close()
            if not models:
                raise ServerError(f"{base_url}/v1/models lists no model; name one with --model")
            model = models[0]
        folder = _session_folder(command.session_folder, command.label or "external")
        source = command.gpu_source or "auto"
        await set_gpu_source(source)
        await _await_gpu_source(hub, source)
        anchor = ClockAnchor.now(clock)
        begun = SessionState(
            session=folder.name,
            folder=str(folder),
            anchor=anchor,
            boot_id=boot_id(),
            label=command.label,
            gpu_source=source,
            plan=command.plan or LoadPlan(),
            status=ServerStatus(
                state=ServerState.UNREACHABLE,
                since=anchor.monotonic,
                kind=HandleKind.EXTERNAL,
                model=model,
                base_url=base_url,
            ),
            api_key_env=None,
            ready_timeout_s=float("inf"),
            shutdown_timeout_s=0.0,
            log=command.log,
        )
        hub.publish(_session_began(begun))
        note = folder / SERVER_LOG
        note.write_text(
            f"The server at {base_url} was not started by gpu-dash. "
            f"Its log: {command.log or 'not given (--log FILE)'}\n",
            encoding="utf-8",
        )
        return cls(hub, clock, begun, ExternalHandle(), command.api_key, _meta_of(begun))

    @classmethod
    async def adopt(cls, hub: Hub, clock: Clock, state: SessionState) -> Session | None:
        """Take over the session of an agent that was killed: same folder, same clock, its log
        from where it stopped. ``None`` after a reboot, when nothing of it can still run."""
        if state.boot_id != boot_id():
            return None
        handle: ServerHandle
        if state.process is not None:
            handle = ProcessHandle.adopt(state.process)
        elif state.container is not None:
            handle = ContainerHandle(state.container, dict(os.environ))
        else:
            handle = ExternalHandle()
        folder = Path(state.folder)
        reader = SessionReader(folder)
        recorded = await asyncio.to_thread(lambda: list(reader.events()))
        history = [_shifted(event, state.anchor.monotonic) for event in recorded]
        hub.publish(_session_began(state))
        for event in history:
            if isinstance(event, LogLines):
                lines = tuple(line for line in event.lines if line.number <= state.log_lines)
                event = msgspec.structs.replace(event, lines=lines)
            if not isinstance(event, SessionBegan | ServerChanged):
                hub.store.fold(event)
        hub.publish(
            Notice(
                at=clock.monotonic(),
                severity=Severity.WARNING,
                text="the agent was restarted: it goes on with the server and the recording; "
                "a load that ran was ended",
            )
        )
        # The state file is up to a second old; the recording knows of later ones.
        requests = [r for e in history if isinstance(e, RequestsEnded) for r in e.requests]
        state = msgspec.structs.replace(
            state,
            next_step=max([state.next_step, *(r.step + 1 for r in requests)]),
            next_request=max([state.next_request, *(r.request + 1 for r in requests)]),
        )
        api_key = os.environ.get(state.api_key_env) if state.api_key_env else None
        session = cls(hub, clock, state, handle, api_key, reader.meta)
        session._steps.restore(history)
        return session

    # -- life ----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The session's name: its folder's."""
        return self._begun.session

    @property
    def status(self) -> ServerStatus:
        """The server's status now."""
        return self._supervisor.status

    @property
    def simulated_url(self) -> str | None:
        """Where simulated cards can be read: the server itself, for the source ``sim``."""
        return self._begun.status.base_url if self._begun.gpu_source == "sim" else None

    async def run(self) -> None:
        """Supervise until the server has ended, then complete the recording."""
        stop_listening = self._hub.listen(self._listen)
        for event in (_session_began(self._begun), self._gpus_now()):
            self._listen(event)
        try:
            if self._begun.log is not None:
                self._follower = LogFollower(Path(self._begun.log), self._batch_arrived)
                self._follower.start(self._log_offset, self._log_lines + 1)
            if isinstance(self._handle, ContainerHandle) and self._begun.log is not None:
                await self._handle.follow(Path(self._begun.log))
            self._load.offer(self._begun.plan)
            await self._load.start()
            await self._supervisor.run()
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

    def verdict(self) -> Verdict | None:
        """The three conditions over the steps so far; ``None``: there is nothing to judge, or
        the server failed, which no condition can make good."""
        if self.status.state is ServerState.FAILED or not self._steps.results:
            return None
        return self._steps.verdict()

    def knee_concurrency(self) -> int | None:
        """The step from which more load gains little."""
        return self._steps.knee_concurrency()

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

    def _gpus_now(self) -> GpuSourceChanged:
        """The cards as they are known when the session begins: the sampler said so before."""
        store = self._hub.store
        return GpuSourceChanged(
            at=self._clock.monotonic(),
            source=store.gpu_source,
            state=store.gpu_state,
            detail=store.gpu_detail,
            gpus=tuple(track.info for track in store.gpu_tracks()),
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
            if finding.root and finding.severity in (Severity.ERROR, Severity.CRITICAL):
                self._supervisor.take_error(finding.message)
            self._publish(finding)

    async def _drain_log(self) -> None:
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
        self._recorder.finish(
            verdict=self.verdict(),
            exit_code=self._supervisor.status.exit_code,
            knee_concurrency=self._steps.knee_concurrency(),
        )
        await asyncio.to_thread(self._recorder.close)
        self._ended.set()

    def _record_notice(self, text: str) -> None:
        """From the recorder's thread."""
        notice = Notice(at=self._clock.monotonic(), severity=Severity.ERROR, text=text)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._publish, notice)


def _session_folder(asked: str | None, label: str) -> Path:
    if asked is None:
        return new_session_folder(label)
    folder = Path(asked)
    check_session_folder(folder)
    return folder


def _session_began(begun: SessionState) -> SessionBegan:
    return SessionBegan(
        at=begun.anchor.monotonic,
        session=begun.session,
        folder=begun.folder,
        anchor=begun.anchor,
        label=begun.label,
        profile=begun.status.profile,
        gpu_source=begun.gpu_source,
    )


def _meta_of(
    begun: SessionState, argv: tuple[str, ...] = (), environment_names: tuple[str, ...] = ()
) -> SessionMeta:
    return SessionMeta(
        gpu_dash_version=__version__,
        session=begun.session,
        label=begun.label,
        profile=begun.status.profile,
        model=begun.status.model,
        base_url=begun.status.base_url,
        kind=begun.status.kind,
        argv=argv,
        gpu_source=begun.gpu_source,
        anchor=begun.anchor,
        boot_id=begun.boot_id,
        plan=begun.plan,
        visible_gpus=begun.status.visible_gpus,
        environment_names=environment_names,
    )


async def _launch_process(
    command: Launch, line: LaunchCommand, begun: SessionState, folder: Path
) -> tuple[ServerHandle, SessionState]:
    handle = await ProcessHandle.launch(
        line.argv,
        line.environment,
        folder=command.folder,
        log_path=folder / SERVER_LOG,
        status_path=folder / KEEPER_STATUS,
    )
    status = msgspec.structs.replace(begun.status, pid=handle.pid)
    return handle, msgspec.structs.replace(begun, process=handle.record, status=status)


async def _launch_container(
    command: Launch, line: LaunchCommand, begun: SessionState
) -> tuple[ServerHandle, SessionState]:
    server = command.profile.server
    record = ContainerRecord(program=server.command[0], name=f"gpu-dash-{begun.session}")
    names = [*server.env, *(["VLLM_API_KEY"] if line.api_key else [])]
    arguments = [
        *server.container_args,
        *(word for name in names for word in ("--env", name)),
        server.image or "",
        server.model,
        *("--host", "0.0.0.0", "--port", str(line.port)),
        *flag_arguments(server.flags),
    ]
    handle = await ContainerHandle.launch(record, arguments, line.environment)
    return handle, msgspec.structs.replace(begun, container=record)


async def _await_gpu_source(hub: Hub, source: str) -> None:
    """Wait until the source has said what it has.

    Raises:
        GpuSourceError: it was asked for by name and has nothing.
    """
    asked_by_name = source in ("nvml", "amd")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GPU_SOURCE_S
    store = hub.store
    while loop.time() < deadline:
        answered = source in ("auto", store.gpu_source)
        if answered and store.gpu_state is not GpuSourceState.STARTING:
            break
        await asyncio.sleep(0.02)
    if asked_by_name and store.gpu_state is not GpuSourceState.LIVE:
        raise GpuSourceError(store.gpu_detail or f"the source {source} does not answer")


def _shifted(event: Any, seconds: float) -> Event:
    """A recorded event (its time counts from the session's start) on the host's clock."""
    shifted: Event = msgspec.structs.replace(event, at=event.at + seconds)
    return shifted
