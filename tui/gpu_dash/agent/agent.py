"""The agent: takes commands, owns the sampler and the current session."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

import msgspec

from gpu_dash import __version__
from gpu_dash.agent.beginnings import adopt, launch, watch
from gpu_dash.agent.home import AgentHome
from gpu_dash.agent.hub import Hub
from gpu_dash.agent.restarts import RestartPolicy, RestartRecord
from gpu_dash.agent.session import Session
from gpu_dash.agent.state_file import SessionState, load_state, save_state
from gpu_dash.gpu.process import SamplerProcess
from gpu_dash.gpu.protocol import SIMULATED_CARDS
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.commands import (
    AskStatus,
    Command,
    Launch,
    PauseLoad,
    Reply,
    ResumeLoad,
    SetConcurrency,
    SetRate,
    StartRamp,
    StopAgent,
    StopLoad,
    StopServer,
    TakeControl,
    Watch,
)
from gpu_dash.model.errors import GpuDashError, UsageError
from gpu_dash.model.events import Event, Notice
from gpu_dash.model.log import Severity
from gpu_dash.model.pace import at_intervals
from gpu_dash.model.server import ServerState, ServerStatus
from gpu_dash.server.processes import environment_of

SAVE_INTERVAL_S = 1.0


class Agent:
    """One agent: a hub, a sampler, and at most one session that goes on.

    Args:
        home: where its lock, socket and state file lie; the lock is held by the caller.
        gpu_source: ``auto``, ``nvml``, ``amd``, ``sim`` or ``none``; a launch may change it.
        clock: where ``at`` comes from.
    """

    def __init__(
        self, home: AgentHome, *, gpu_source: str = "auto", clock: Clock | None = None
    ) -> None:
        self.home = home
        self.hub = Hub()
        self.ended = asyncio.Event()
        self.keeps_server = True
        """Whether the end of the agent leaves the server alone."""
        self._clock = clock or SystemClock()
        self._gpu_source = gpu_source
        self._cards = SIMULATED_CARDS
        self._sampler: SamplerProcess | None = None
        self._session: Session | None = None
        self._launch: Launch | None = None
        """The command that began the session; in memory only, as the environment is in it."""
        self._restarts = RestartPolicy(0, 0.0)
        self._restarting: asyncio.Task[None] | None = None
        """Waits to start a server again that has failed."""
        self._changing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._saved_failed = False

    async def start(self) -> None:
        """Start the sampler and take over what an earlier agent of this home left."""
        state = load_state(self.home.state_path)
        if state is not None:
            self._gpu_source = state.gpu_source
            self._session = await adopt(self.hub, self._clock, state)
            if self._session is None:
                save_state(self.home.state_path, None)
        await self._set_gpu_source(self._gpu_source)
        if self._session is not None:
            if state is not None and state.restart is not None:
                self._take_over_restarts(state, state.restart)
            self._follow_session(self._session)
        self._spawn(self._save_state_regularly())

    async def close(self, *, keep_server: bool) -> None:
        """End: stop load and server unless they are to go on, then the children."""
        session = self._session
        if session is not None and not keep_server:
            await session.stop()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if session is not None and not session.has_ended:
            await session.leave()
        self._save_state()
        if self._sampler is not None:
            await self._sampler.stop()

    def end_soon(self) -> None:
        """Let the process that serves this agent end it."""
        self.ended.set()

    def end_when_idle(self, seconds: float) -> None:
        """End once nobody has watched and nothing has run for so long."""
        self._spawn(self._end_when_idle(seconds))

    @property
    def session(self) -> Session | None:
        """The session that goes on, or the last one."""
        return self._session

    # -- commands ------------------------------------------------------------------------------

    def taken(self, number: int, data: Any = None) -> Reply:
        """The reply to a command that was taken."""
        return Reply(id=number, ok=True, data=data)

    def refused(self, number: int, error: str, exit_code: int = 2) -> Reply:
        """The reply to a command that was not."""
        return Reply(id=number, ok=False, error=error, exit_code=exit_code)

    async def handle(self, number: int, command: Command) -> Reply:
        """Carry out a command; the reply says whether it was taken, events say what it did."""
        try:
            return self.taken(number, await self._carry_out(command))
        except GpuDashError as error:
            return self.refused(number, str(error), error.exit_code)

    async def _carry_out(self, command: Command) -> Any:
        match command:
            case Launch() | Watch():
                async with self._changing:
                    return await self._begin(command)
            case StopServer():
                async with self._changing:
                    if self._restarting is not None and self._session_is_over():
                        self._restarting.cancel()
                        self._restarting = None
                        return {"kind": str(self.hub.store.server.kind)}
                    session = self._running_session()
                    await session.stop()
                    return {"kind": str(session.status.kind)}
            case StartRamp():
                self._running_session().start_ramp(command.plan)
            case SetConcurrency():
                self._running_session().set_concurrency(command.concurrency)
            case SetRate():
                self._running_session().set_rate(command.rate)
            case PauseLoad():
                self._running_session().pause_load()
            case ResumeLoad():
                self._running_session().resume_load()
            case StopLoad():
                await self._running_session().stop_load()
            case StopAgent():
                self.keeps_server = command.keep_server
            case AskStatus():
                return self._status()
            case TakeControl():
                pass
        return None

    def _running_session(self) -> Session:
        if self._session is None or self._session.has_ended:
            raise UsageError("no server runs; launch one with gpu-dash PROFILE")
        return self._session

    async def _begin(self, command: Launch | Watch) -> dict[str, str]:
        current = self._session
        if current is not None and not current.has_ended:
            status = current.status
            raise UsageError(
                f"{status.profile or status.base_url} is {status.state}; stop it first "
                "(gpu-dash stop --server)"
            )
        if self._restarting is not None:
            self._restarting.cancel()
            self._restarting = None
        if isinstance(command, Launch):
            session = await launch(self.hub, self._clock, command, self._set_gpu_source)
        else:
            session = await watch(self.hub, self._clock, command, self._set_gpu_source)
        if isinstance(command, Launch) and command is not self._launch:
            self._restarts = RestartPolicy.of(command.profile)
        self._launch = command if isinstance(command, Launch) else None
        self._session = session
        self._follow_session(session)
        self._save_state()
        return {"session": session.name, "folder": str(session.folder)}

    def _follow_session(self, session: Session) -> None:
        if self._sampler is not None and session.simulated_url is not None:
            self._sampler.set_simulated_url(session.simulated_url)
        self._spawn(self._run_session(session))

    async def _run_session(self, session: Session) -> None:
        try:
            await session.run()
        except Exception:
            # A fault of our own, told by whoever waits for this task. The session must still
            # end: nobody would look after its server.
            await session.stop()
            raise
        if self._sampler is not None:
            self._sampler.set_simulated_url(None)
        save_state(self.home.state_path, None)
        if session.status.state is ServerState.FAILED and session is self._session:
            self._start_again_later(session)

    def _take_over_restarts(self, state: SessionState, record: RestartRecord) -> None:
        """Go on with the restart policy of the agent that was killed. The environment was in its
        memory only; the server still has it."""
        environment: dict[str, str] | None = dict(os.environ)
        if state.process is not None:
            environment = environment_of(state.process.server)
        if environment is None:
            self._notice(
                Severity.WARNING,
                "the server ended while no agent ran, and its environment with it: it is not "
                "started again",
            )
            return
        self._launch = record.command(environment)
        self._restarts = RestartPolicy.of(record.profile, record.count)

    def _session_is_over(self) -> bool:
        return self._session is None or self._session.has_ended

    def _start_again_later(self, failed: Session) -> None:
        """Begin to wait for the next start of a server that failed, if it gets one."""
        command = self._launch
        if command is None or command.session_folder is not None:
            return
        ready_after_s = failed.status.ready_after_s
        at = self._clock.monotonic()
        ready_for_s = 0.0
        if ready_after_s is not None:
            ready_for_s = at - failed.began_at - ready_after_s
        delay_s = self._restarts.next_delay_s(ready_for_s)
        if delay_s is None:
            if self._restarts.limit:
                self._notice(
                    Severity.ERROR,
                    f"the server failed {self._restarts.count + 1} times: it is left alone; see "
                    "the first error of its log",
                )
            return
        self._notice(
            Severity.WARNING,
            f"the server failed: start {self._restarts.count} of {self._restarts.limit} in "
            f"{delay_s:g} s (gpu-dash stop --server leaves it alone)",
        )
        self._restarting = self._spawn(self._start_again(command, failed, delay_s))

    async def _start_again(self, command: Launch, failed: Session, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        async with self._changing:
            if self._session is not failed:
                return
            self._restarting = None
            try:
                await self._begin(command)
            except GpuDashError as error:
                self._notice(Severity.ERROR, f"the server cannot be started again: {error}")

    def _notice(self, severity: Severity, text: str) -> None:
        self.hub.publish(Notice(at=self._clock.monotonic(), severity=severity, text=text))

    def _status(self) -> dict[str, Any]:
        store = self.hub.store
        load = store.load
        return {
            "agent": self.home.name,
            "pid": os.getpid(),
            "version": __version__,
            "viewers": self.hub.viewers,
            "session": store.session or None,
            "folder": store.session_folder or None,
            "server": {
                "state": str(store.server.state),
                "since_s": self._seconds_since(store.server),
                "kind": str(store.server.kind),
                "profile": store.server.profile,
                "model": store.server.model,
                "base_url": store.server.base_url,
                "pid": store.server.pid,
                "stage": store.server.stage,
                "exit_code": store.server.exit_code,
                "detail": store.server.detail,
            },
            "load": {
                "state": str(load.state) if load is not None else "idle",
                "concurrency": load.concurrency if load is not None else 0,
                "request_rate": load.request_rate if load is not None else None,
                "step": load.step if load is not None else 0,
            },
            "gpus": {
                "source": store.gpu_source,
                "state": str(store.gpu_state),
                "detail": store.gpu_detail,
                "count": len(store.gpus),
            },
        }

    def _seconds_since(self, server: ServerStatus) -> float | None:
        if server.state is ServerState.NONE:
            return None
        return round(self._clock.monotonic() - server.since, 1)

    # -- inner ---------------------------------------------------------------------------------

    async def _set_gpu_source(self, source: str, cards: int = SIMULATED_CARDS) -> None:
        """Read the cards from ``source`` from now on."""
        if self._sampler is not None:
            if source == self._gpu_source and (source != "sim" or cards == self._cards):
                return
            await self._sampler.stop()
        self._gpu_source, self._cards = source, cards
        self._sampler = SamplerProcess(source, self._publish, sim_cards=cards)
        await self._sampler.start()

    def _publish(self, event: Event) -> None:
        self.hub.publish(event)

    def _save_state(self) -> None:
        session = self._session
        state = None if session is None or session.has_ended else session.state()
        if state is not None and self._launch is not None:
            restart = RestartRecord.of(self._launch, self._restarts)
            state = msgspec.structs.replace(state, restart=restart)
        try:
            save_state(self.home.state_path, state)
        except OSError as error:
            if not self._saved_failed:
                self._saved_failed = True
                self.hub.publish(
                    Notice(
                        at=self._clock.monotonic(),
                        severity=Severity.ERROR,
                        text=f"{self.home.state_path}: {error.strerror}; if the agent were "
                        "killed now, the next one could not adopt the server",
                    )
                )
        else:
            self._saved_failed = False

    async def _save_state_regularly(self) -> None:
        async for _ in at_intervals(SAVE_INTERVAL_S):
            if self._session is not None and not self._session.has_ended:
                self._save_state()

    async def _end_when_idle(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        busy_at = loop.time()
        while loop.time() - busy_at < seconds:
            await asyncio.sleep(1.0)
            running = self._session is not None and not self._session.has_ended
            if running or self.hub.viewers:
                busy_at = loop.time()
        self.end_soon()

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        with contextlib.suppress(asyncio.CancelledError):
            error = task.exception()
            if error is not None:
                # A fault of our own: said where the person looks, and in the agent's log.
                self.hub.publish(
                    Notice(
                        at=self._clock.monotonic(),
                        severity=Severity.ERROR,
                        text=f"a fault inside gpu-dash: {type(error).__name__}: {error}; "
                        f"see {self.home.log_path}",
                    )
                )
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "a task of the agent failed", "exception": error, "task": task}
                )
