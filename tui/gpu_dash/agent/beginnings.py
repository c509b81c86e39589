"""The three ways in which a session begins: a launch, an attachment, an adoption.

Each makes the facts that the next agent would need (:class:`SessionState`), the handle of the
server and the head of the recording; the rest is the same for all.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from gpu_dash import __version__
from gpu_dash.agent.hub import Hub
from gpu_dash.agent.neighbours import check_neighbours, running_sessions
from gpu_dash.agent.server_cards import cards_of_launch, cards_of_process
from gpu_dash.agent.session import SERVER_LOG, Session, session_began
from gpu_dash.agent.start_server import start_server
from gpu_dash.agent.state_file import SessionState
from gpu_dash.agent.store import HISTORY_SECONDS, Store
from gpu_dash.gpu.protocol import SIMULATED_CARDS
from gpu_dash.load.check import check_plan
from gpu_dash.load.trace import with_trace
from gpu_dash.model.clock import Clock, ClockAnchor
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.duration import parse_duration
from gpu_dash.model.errors import GpuSourceError, RecordError, ServerError
from gpu_dash.model.events import (
    Event,
    LogLines,
    Notice,
    RequestsEnded,
    ServerChanged,
    SessionBegan,
    SessionEnded,
    ThrottleEnded,
)
from gpu_dash.model.gpu import GpuSample, GpuSourceState
from gpu_dash.model.load import LoadPlan
from gpu_dash.model.log import Severity
from gpu_dash.model.server import HandleKind, ServerState, ServerStatus
from gpu_dash.record.folder import check_session_folder, new_session_folder
from gpu_dash.record.journal import shifted
from gpu_dash.record.meta import SessionMeta
from gpu_dash.record.reader import SessionReader
from gpu_dash.record.recorder import Recorder
from gpu_dash.server.adopted import AdoptedHandle
from gpu_dash.server.command_line import (
    build_command,
    parallel_of,
)
from gpu_dash.server.compose import ComposeHandle
from gpu_dash.server.endpoint import EndpointProbe, normalize_base_url
from gpu_dash.server.gpu_check import check_gpus
from gpu_dash.server.handles import (
    STARTING_GRACE_S,
    ContainerHandle,
    ExternalHandle,
    ProcessHandle,
    ServerHandle,
)
from gpu_dash.server.preflight import check_launch, free_port
from gpu_dash.server.processes import boot_id

GPU_SOURCE_S = 10.0
"""How long a source of readings may take to say what it has."""

SetGpuSource = Callable[[str, int], Awaitable[None]]
"""Read the cards from that source; simulated ones are so many while no server runs."""


async def launch(hub: Hub, clock: Clock, command: Launch, set_gpu_source: SetGpuSource) -> Session:
    """Start a server from a profile.

    Raises:
        UsageError: the profile, the plan, the pre-flight or the session folder says no.
        GpuSourceError: a source was asked for by name and is not usable.
        ServerError: the program could not be started.
    """
    profile, environment = command.profile, command.environment
    plan = with_trace(command.plan or profile.plan())
    check_plan(plan)
    if not command.force:
        await asyncio.to_thread(check_launch, profile, environment, command.folder)
    port = profile.server.port or free_port(profile.server.host, f"profile {profile.name!r}")
    line = build_command(profile, environment, port)
    source = command.gpu_source or profile.gpu.source
    await set_gpu_source(source, profile.gpu.simulated_cards)
    await _await_gpu_source(hub, source)
    infos = [track.info for track in hub.store.gpu_tracks()]
    visible = cards_of_launch(profile, environment, infos)
    parallel = parallel_of(profile)
    gpus = visible.gpus[: parallel.world] if infos else None
    if not command.force:
        divided = [info.gpu for info in infos if info.mig_uuids]
        if source != "sim":  # simulated cards are everybody's own
            check_gpus(profile, visible.gpus, visible.problem, _readings(hub.store), divided)
        where = f"profile {profile.name!r}"
        check_neighbours(where, profile.server.port, gpus, source, running_sessions())
    folder = _session_folder(command.session_folder, command.label or profile.name)
    anchor = ClockAnchor.now(clock)
    status = ServerStatus(
        state=ServerState.STARTING,
        since=anchor.monotonic,
        stage_since=anchor.monotonic,
        kind=profile.server.kind,
        profile=profile.name,
        model=line.model,
        base_url=line.base_url,
        visible_gpus=gpus,
        parallel=parallel,
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
        has_headers=bool(command.headers.pairs),
    )
    hub.publish(session_began(begun))
    meta = _meta_of(begun, line.argv, tuple(profile.server.env))
    try:
        handle, begun = await start_server(command, line, begun)
    except ServerError as error:
        failed = msgspec.structs.replace(status, state=ServerState.FAILED, detail=str(error))
        told = (
            ServerChanged(at=clock.monotonic(), status=failed),
            SessionEnded(at=clock.monotonic(), session=begun.session),
        )
        for event in told:
            hub.publish(event)
        with contextlib.suppress(RecordError):
            recorder = Recorder(folder, meta, lambda text: None)
            for event in told:
                recorder.record(event)
            await asyncio.to_thread(recorder.close)
        raise
    try:
        return Session(
            *(hub, clock, begun, handle, line.api_key, meta),
            headers=command.headers,
            ramp_when_ready=command.ramp_when_ready,
        )
    except BaseException:
        # Nobody would look after it: a server that cannot be supervised must not stay.
        await handle.stop(starting=True, grace_s=STARTING_GRACE_S)
        raise


async def watch(hub: Hub, clock: Clock, command: Watch, set_gpu_source: SetGpuSource) -> Session:
    """Watch and load a server that somebody else started.

    Raises:
        UsageError: the URL, the plan or the session folder is wrong.
        ServerError: no model was named and the server does not name its own.
    """
    plan = with_trace(command.plan or LoadPlan())
    check_plan(plan)
    base_url = normalize_base_url(command.base_url)
    model, answers = await _ask_endpoint(base_url, command)
    source = command.gpu_source or "auto"
    await set_gpu_source(source, SIMULATED_CARDS)
    await _await_gpu_source(hub, source)
    folder = _session_folder(command.session_folder, command.label or "external")
    log_offset, log_lines = await asyncio.to_thread(_end_of_log, command.log)
    anchor = ClockAnchor.now(clock)
    gpus, parallel = None, None
    if command.process is not None and hub.store.gpus:
        infos = [track.info for track in hub.store.gpu_tracks()]
        gpus, parallel = cards_of_process(command.process.pid, infos)
    begun = SessionState(
        session=folder.name,
        folder=str(folder),
        anchor=anchor,
        boot_id=boot_id(),
        label=command.label,
        gpu_source=source,
        plan=plan,
        status=ServerStatus(
            state=ServerState.READY if answers else ServerState.UNREACHABLE,
            since=anchor.monotonic,
            stage_since=anchor.monotonic,
            kind=HandleKind.EXTERNAL if command.process is None else HandleKind.PROCESS,
            model=model,
            base_url=base_url,
            pid=None if command.process is None else command.process.pid,
            visible_gpus=gpus,
            parallel=parallel,
        ),
        api_key_env=None,
        ready_timeout_s=float("inf"),
        shutdown_timeout_s=0.0,
        log=str(folder / SERVER_LOG) if command.log_command else command.log,
        has_headers=bool(command.headers.pairs),
        adopted=command.process,
        log_command=command.log_command,
        log_offset=log_offset,
        log_lines=log_lines,
    )
    hub.publish(session_began(begun))
    handle: ServerHandle
    handle = ExternalHandle() if command.process is None else AdoptedHandle(command.process)
    if command.log_command:
        return Session(
            *(hub, clock, begun, handle, command.api_key, _meta_of(begun)), headers=command.headers
        )
    note = folder / SERVER_LOG
    note.write_text(
        f"The server at {base_url} was not started by gpu-dash. "
        f"Its log: {command.log or 'not given (--log FILE)'}\n",
        encoding="utf-8",
    )
    return Session(
        *(hub, clock, begun, handle, command.api_key, _meta_of(begun)), headers=command.headers
    )


async def adopt(hub: Hub, clock: Clock, state: SessionState) -> Session | None:
    """Take over the session of an agent that was killed: same folder, same clock, its log
    from where it stopped. ``None`` after a reboot, when nothing of it can still run."""
    if state.boot_id != boot_id():
        return None
    handle: ServerHandle
    if state.process is not None:
        handle = ProcessHandle.adopt(state.process)
    elif state.adopted is not None:
        handle = AdoptedHandle(state.adopted)
    elif state.container is not None:
        handle = ContainerHandle(state.container, dict(os.environ))
    elif state.compose is not None:
        handle = ComposeHandle(state.compose, dict(os.environ))
    else:
        handle = ExternalHandle()
    folder = Path(state.folder)
    reader = SessionReader(folder)
    now = clock.monotonic()
    since_s = state.anchor.time_s(now) - HISTORY_SECONDS
    recorded = await asyncio.to_thread(lambda: list(reader.events(readings_since_s=since_s)))
    history = [shifted(event, state.anchor.monotonic) for event in recorded]
    hub.publish(session_began(state))
    for event in history:
        if isinstance(event, LogLines):
            lines = tuple(line for line in event.lines if line.number <= state.log_lines)
            event = msgspec.structs.replace(event, lines=lines)
        if not isinstance(event, SessionBegan | ServerChanged):
            hub.store.fold(event)
    taken_over = [
        *_throttles_that_nobody_saw_end(hub.store),
        Notice(
            at=now,
            severity=Severity.WARNING,
            text="the agent was restarted: it goes on with the server and the recording; "
            "a load that ran was ended",
        ),
    ]
    if state.has_headers:
        text = (
            "the headers of the requests are lost with the agent before: begin again to send them"
        )
        taken_over.append(Notice(at=now, severity=Severity.WARNING, text=text))
    for event in taken_over:
        hub.publish(event)
    # The state file is up to a second old; the recording knows of later ones.
    requests = [r for e in history if isinstance(e, RequestsEnded) for r in e.requests]
    state = msgspec.structs.replace(
        state,
        next_step=max([state.next_step, *(r.step + 1 for r in requests)]),
        next_request=max([state.next_request, *(r.request + 1 for r in requests)]),
    )
    api_key = os.environ.get(state.api_key_env) if state.api_key_env else None
    session = Session(hub, clock, state, handle, api_key, reader.meta)
    session.take_over(history, taken_over)
    return session


def _session_folder(asked: str | None, label: str) -> Path:
    if asked is None:
        return new_session_folder(label)
    folder = Path(asked)
    check_session_folder(folder)
    return folder


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


async def _ask_endpoint(base_url: str, command: Watch) -> tuple[str, bool]:
    """The model to ask for, and whether the server answers now.

    Raises:
        ServerError: no model was named and the server does not name its own.
    """
    probe = EndpointProbe(base_url, command.api_key, command.headers)
    try:
        if command.model is not None:
            return command.model, not await probe.trouble() or await probe.is_reachable()
        models = await probe.models()
    finally:
        await probe.close()
    if not models:
        raise ServerError(f"{base_url}/v1/models lists no model; name one with --model")
    return models[0], True


def _end_of_log(path: str | None) -> tuple[int, int]:
    """Bytes and lines of a log as it stands: what it told before we watched is not news."""
    offset = lines = 0
    if path is None:
        return offset, lines
    try:
        with open(path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                offset += len(line)
                lines += 1
    except OSError:
        # The follower waits for a log that is not there yet, and says so.
        return 0, 0
    return offset, lines


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


def _readings(store: Store) -> dict[int, GpuSample]:
    """The newest reading of each card; an empty one where none has come yet."""
    return {
        track.info.gpu: track.latest or GpuSample(gpu=track.info.gpu)
        for track in store.gpu_tracks()
    }


def _throttles_that_nobody_saw_end(store: Store) -> list[Event]:
    """The throttles that went on when the last agent was killed end with its last reading; the
    sampler says it if one still goes on."""
    return [
        ThrottleEnded(
            at=track.latest_at if track.latest_at is not None else span.began_at,
            gpu=span.gpu,
            kind=span.kind,
            began_at=span.began_at,
            peak_temperature_celsius=span.temperature_celsius,
            lowest_sm_clock_mhz=span.lowest_sm_clock_mhz,
        )
        for track in store.gpu_tracks()
        for span in track.throttles.values()
    ]
