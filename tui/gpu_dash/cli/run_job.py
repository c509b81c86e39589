"""The job of ``gpu-dash run``: an agent in this very process, from launch to verdict."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import click
import msgspec

from gpu_dash.agent.agent import Agent
from gpu_dash.agent.home import AgentHome
from gpu_dash.agent.service import Service
from gpu_dash.analysis.band import against_band
from gpu_dash.analysis.verdict import Verdict
from gpu_dash.cli.options import print_json
from gpu_dash.cli.progress import Progress, short_load
from gpu_dash.model.commands import Command, Launch, StartRamp, StopLoad, Watch
from gpu_dash.model.errors import AgentError, CommandRefused, ServerError
from gpu_dash.model.events import (
    Event,
    LoadChanged,
    RequestsEnded,
    ServerChanged,
    StepEnded,
)
from gpu_dash.model.load import (
    ExpectedBand,
    LoadMode,
    LoadState,
    Outcome,
    StepResult,
    load_words,
)
from gpu_dash.model.server import ServerState

EXIT_DONE, EXIT_ANSWER_IS_NO, EXIT_NOT_RECORDED, EXIT_INTERRUPTED = 0, 1, 2, 130
EXTERNAL_READY_S = 10.0
"""How long a server that should run already may take to answer."""


class RunJob:
    """One run.

    Args:
        begin: the launch or attachment.
        as_json: one JSON object per step and the verdict on stdout, instead of lines to read.
    """

    def __init__(self, begin: Launch | Watch, *, as_json: bool) -> None:
        self._begin = begin
        self._as_json = as_json
        self._progress = Progress()
        self._ready = asyncio.Event()
        self._load_ended = asyncio.Event()
        self._interrupted = asyncio.Event()
        self._failure = ""
        self._ramp_began = False
        self._requests_ok = 0
        self._last_failure = ""
        self._expected: ExpectedBand | None = None

    async def run(self) -> int:
        """Do the whole job; the exit code.

        Raises:
            GpuDashError: it could not begin, or the server failed.
        """
        home = AgentHome.named(f"run-{os.getpid()}")
        if home.acquire() is None:
            raise AgentError(f"{home.folder} is in use by another agent")
        agent = Agent(home, gpu_source=self._begin.gpu_source or "auto")
        service = Service(agent)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupted.set)
        agent.hub.listen(self._take)
        await agent.start()
        await service.start()
        try:
            return await self._work(agent)
        finally:
            await agent.close(keep_server=False)
            await service.close()
            self._progress.end()
            home.remove()

    async def _work(self, agent: Agent) -> int:
        await self._ask(agent, self._begin)
        session = agent.session
        assert session is not None
        await self._until(self._ready)
        if not self._interrupted.is_set() and not self._failure:
            await self._ask(agent, StartRamp())
            self._ramp_began = True
            await self._until(self._load_ended)
        if self._interrupted.is_set():
            await agent.handle(0, StopLoad())
        status = session.status
        if status.state is ServerState.UNREACHABLE and not self._interrupted.is_set():
            self._failure = self._failure or status.detail
        server_died = self._failure
        verdict, knee = session.verdict(), session.knee()
        await session.stop()
        self._progress.end()
        self._tell_verdict(verdict, knee, str(session.folder))
        if self._interrupted.is_set():
            return EXIT_INTERRUPTED
        if server_died:
            log = f"; its log: {session.log}" if session.log else ""
            raise ServerError(f"the server failed: {server_died}{log}")
        if self._requests_ok == 0:
            raise ServerError(f"no request succeeded: {self._last_failure or 'none ended'}")
        if session.rows_lost:
            click.echo(
                f"gpu-dash: {session.folder}: {session.rows_lost} rows could not be written",
                err=True,
            )
            return EXIT_NOT_RECORDED
        return EXIT_ANSWER_IS_NO if verdict.passed is False else EXIT_DONE

    async def _ask(self, agent: Agent, command: Command) -> None:
        reply = await agent.handle(0, command)
        if not reply.ok:
            raise CommandRefused(reply.error, reply.exit_code)

    async def _until(self, wanted: asyncio.Event) -> None:
        """Wait for an event, a failure or an interrupt."""
        waits = [asyncio.create_task(event.wait()) for event in (wanted, self._interrupted)]
        external = self._begin_is_external() and wanted is self._ready
        try:
            done, _ = await asyncio.wait(
                waits,
                return_when=asyncio.FIRST_COMPLETED,
                timeout=EXTERNAL_READY_S if external else None,
            )
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if not done:
            assert isinstance(self._begin, Watch)
            raise ServerError(
                f"{self._begin.base_url} does not answer; check host and port, or start the server"
            )

    def _begin_is_external(self) -> bool:
        return isinstance(self._begin, Watch)

    # -- events --------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        self._progress.take(event)
        match event:
            case ServerChanged(status=status):
                if status.state is ServerState.READY:
                    self._ready.set()
                elif status.state is ServerState.FAILED:
                    self._failure = status.detail or "it ended"
                    self._ready.set()
                    self._load_ended.set()
                elif status.state is ServerState.UNREACHABLE and self._ramp_began:
                    self._progress.say(status.detail)
            case LoadChanged(plan=plan) if plan is not None and not self._ramp_began:
                self._expected = plan.expected
            case LoadChanged(state=LoadState.IDLE, mode=LoadMode.NONE) if self._ramp_began:
                self._load_ended.set()
            case RequestsEnded(requests=requests):
                for request in requests:
                    if request.outcome is Outcome.OK:
                        self._requests_ok += 1
                    else:
                        self._last_failure = f"{request.outcome} {request.detail}".strip()
            case StepEnded(result=result):
                self._progress.clear()
                self._tell_step(result)
            case _:
                pass

    # -- words ---------------------------------------------------------------------------------

    def _tell_step(self, result: StepResult) -> None:
        if self._as_json:
            print_json(msgspec.to_builtins(result))
        else:
            click.echo(_step_line(result))
            place = against_band(result, self._expected)
            if place is not None:
                click.echo(f"         {place.words}")
        sys.stdout.flush()

    def _tell_verdict(self, verdict: Verdict, knee: StepResult | None, folder: str) -> None:
        if self._as_json:
            print_json(
                {
                    "verdict": msgspec.to_builtins(verdict),
                    "knee_concurrency": None if knee is None else knee.concurrency,
                    "knee_request_rate": None if knee is None else knee.request_rate,
                    "session": folder,
                }
            )
            return
        for condition in verdict.conditions:
            word = _judged(condition.passed, "yes", "NO")
            click.echo(f"{condition.name:<20} {word:<11} {condition.detail}")
        at = "none, it never flattened"
        if knee is not None:
            at = load_words(knee.concurrency, knee.request_rate)
        click.echo(f"knee: {at}")
        word = _judged(verdict.passed, "passed", "FAILED")
        click.echo(f"verdict: {word}; session: {folder}")


def _judged(passed: bool | None, yes: str, no: str) -> str:
    return "not judged" if passed is None else yes if passed else no


def _step_line(result: StepResult) -> str:
    def milliseconds(seconds: float | None) -> str:
        return "-" if seconds is None else f"{seconds * 1000:.0f}"

    gpu = ""
    if result.peak_temperature_celsius is not None:
        gpu = f"  {result.peak_temperature_celsius:.0f} °C"
    if result.min_sm_clock_mhz is not None:
        gpu += f"  {result.min_sm_clock_mhz:.0f} MHz"
    if result.throttle_thermal_s:
        gpu += f"  thermal {result.throttle_thermal_s:.1f} s"
    bound = "  client-bound" if result.client_bound else ""
    load = short_load(result.concurrency, result.request_rate)
    failed = f"  failed {result.requests_failed}" if result.requests_failed else ""
    failed += f"  retries {result.retries}" if result.retries else ""
    return (
        f"step {result.step:<3} {load:<6} {result.output_tokens_per_s:8.1f} tok/s"
        f"  ttft {milliseconds(result.ttft_p50_s)}/{milliseconds(result.ttft_p99_s)} ms"
        f"  itl {milliseconds(result.itl_p50_s)}/{milliseconds(result.itl_p99_s)} ms"
        f"  ok {result.requests_ok}{failed}{gpu}{bound}"
    )
