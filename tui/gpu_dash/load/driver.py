"""The agent's side of the load: one method for each thing a person can ask for."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from gpu_dash.load.check import check_open_files, check_plan, check_rate, check_target
from gpu_dash.load.client_limit import ClientWatch, send_lag_p99_s
from gpu_dash.load.conductor import Conductor, Level, Output, StepFinished, levels_of
from gpu_dash.load.ledger import FinishedStep as FinishedStep
from gpu_dash.load.ledger import Ledger
from gpu_dash.load.pool import WorkerPool
from gpu_dash.load.protocol import (
    Cancel,
    Configure,
    Ended,
    FromWorker,
    SetLoad,
    Started,
    StepDrained,
    Tick,
    Window,
    WorkerReady,
)
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.errors import AgentError, UsageError
from gpu_dash.model.events import (
    Event,
    LoadChanged,
    LoadTick,
    Notice,
    RequestsEnded,
    StepBegan,
)
from gpu_dash.model.histogram import Histogram
from gpu_dash.model.load import LoadPlan, LoadState, Target
from gpu_dash.model.log import Severity

_READY_TIMEOUT_S = 20.0
_STOP_TIMEOUT_S = 5.0


class LoadDriver:
    """Drives the load of one session, through worker processes of its own.

    Give each session a driver: steps and requests are numbered through a session. All methods
    belong to the event loop's thread; events and finished steps are handed over from there.

    Args:
        on_event: takes ``LoadChanged``, ``LoadTick``, ``StepBegan``, ``RequestsEnded`` and, when
            the worker is lost, a ``Notice``.
        on_step_finished: takes each step whose window opened, once all its requests have ended.
        clock: where the time comes from.
        first_step: number of the first step; above 1 where another agent began the session.
        first_request: number of the first request, likewise.
        workers: load processes that share the load.
    """

    def __init__(
        self,
        on_event: Callable[[Event], None],
        on_step_finished: Callable[[FinishedStep], None],
        clock: Clock | None = None,
        *,
        first_step: int = 1,
        first_request: int = 1,
        workers: int = 1,
    ) -> None:
        self._on_event = on_event
        self._on_step_finished = on_step_finished
        self._clock = clock or SystemClock()
        self._conductor = Conductor(first_step)
        self._ledger = Ledger(first_request)
        self._target: Target | None = None
        self._workers = workers
        self._seed = random.SystemRandom().getrandbits(32) + 1
        """Of plans without one: the same for all workers, another in each session."""
        self._child: WorkerPool | None = None
        self._watch = ClientWatch()
        self._configured: tuple[Target, LoadPlan] | None = None
        """What the living worker was told last."""
        self._open_files: int | None = None
        """How many files a worker may open, once one has said so."""
        self._why_lost = ""
        self._timer: asyncio.TimerHandle | None = None
        self._settled = asyncio.Event()
        """The worker came up, or was lost."""
        self._outputs: deque[Output] = deque()
        self._is_applying = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def state(self) -> LoadState:
        """What the load does now."""
        return self._conductor.state

    @property
    def next_step(self) -> int:
        """Number that the next step will have."""
        return self._conductor.newest_step + 1

    @property
    def next_request(self) -> int:
        """A number that no request has had."""
        return self._ledger.next_request

    async def start(self) -> None:
        """Start the worker ahead of the first request, and wait until it is up.

        Raises:
            AgentError: it does not come up.
        """
        if self._target is None:
            self._ensure_child()
        else:
            self._configure(self._conductor.plan)
        try:
            async with asyncio.timeout(_READY_TIMEOUT_S):
                await self._settled.wait()
        except TimeoutError:
            raise AgentError(
                f"the load worker did not come up in {_READY_TIMEOUT_S:g} s; is the host "
                "overloaded?"
            ) from None
        if self._child is None:
            raise AgentError(self._why_lost)

    def set_target(self, target: Target) -> None:
        """Say where the load goes, before the first load.

        Raises:
            UsageError: the URL or the key cannot be sent.
        """
        check_target(target)
        self._target = target

    def offer(self, plan: LoadPlan) -> None:
        """Say what keys use, and which ramp a key would start, until a ramp brings its own plan.

        Raises:
            UsageError: the plan cannot be run, or the load runs.
        """
        check_plan(plan)
        if self.state is not LoadState.IDLE:
            raise UsageError("the load runs; stop it before its plan is changed")
        self._apply(self._conductor.offer(plan, self._clock.monotonic()))

    def start_ramp(self, plan: LoadPlan | None = None) -> None:
        """Begin a ramp at its first step, whatever runs now.

        Args:
            plan: the ramp; the one that was offered, or ran last, if left out.

        Raises:
            UsageError: the plan cannot be run, there is no target, or the host allows fewer
                connections.
        """
        plan = plan or self._conductor.plan
        check_plan(plan)
        self._configure(plan, max(level.concurrency for level in levels_of(plan)))
        self._apply(self._conductor.start_ramp(plan, self._clock.monotonic()))

    def set_concurrency(self, concurrency: int) -> None:
        """Change the load by hand, from any state; ends a ramp. 0 stops.

        Raises:
            UsageError: there is no target, or the host allows fewer connections.
        """
        if concurrency > 0:
            self._configure(self._conductor.plan, concurrency)
        self._apply(self._conductor.set_level(Level(concurrency), self._clock.monotonic()))

    def set_rate(self, rate: float) -> None:
        """Change the load by hand to an open loop of so many requests per second, from any state;
        ends a ramp.

        Raises:
            UsageError: there is no target, or no such rate can be sent.
        """
        check_rate(rate)
        self._configure(self._conductor.plan)
        self._apply(self._conductor.set_level(Level(0, rate), self._clock.monotonic()))

    def pause(self) -> None:
        """Send nothing new; the step ends, what is in flight goes on to its end."""
        self._apply(self._conductor.pause(self._clock.monotonic()))

    def resume(self) -> None:
        """Go on after :meth:`pause`, with a new step at the same place.

        Raises:
            UsageError: there is no target.
        """
        if self.state is LoadState.PAUSED:
            self._configure(self._conductor.plan)
            self._apply(self._conductor.resume(self._clock.monotonic()))

    async def stop(self) -> None:
        """End the load: cancel what is in flight, and return when nothing is."""
        self._apply(self._conductor.stop(self._clock.monotonic()))
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await self._idle.wait()
        except TimeoutError:
            if self._child is not None:
                self._child.kill()
            await self._idle.wait()

    async def finished(self) -> None:
        """Wait until the load is idle: the ramp has ended and nothing is in flight."""
        await self._idle.wait()

    async def close(self) -> None:
        """Stop the load and end the worker."""
        await self.stop()
        if self._child is not None:
            await self._child.close()
            self._child = None
        self._cancel_timer()

    # -- the worker ----------------------------------------------------------------------------

    def _ensure_child(self) -> WorkerPool:
        if self._child is None:
            self._settled.clear()
            self._child = WorkerPool(self._workers, self._on_frame, self._on_lost)
            self._configured = None
        return self._child

    def _configure(self, plan: LoadPlan, concurrency: int = 0) -> None:
        """Bring the worker to where it can send the requests of this plan."""
        if self._target is None:
            raise UsageError("no server to load yet: launch one, or give --base-url")
        if self._open_files is not None:
            check_open_files(concurrency, self._open_files)
        child = self._ensure_child()
        if self._configured != (self._target, plan):
            self._configured = (self._target, plan)
            first = self._ledger.next_request
            seeded = msgspec.structs.replace(plan, seed=plan.seed or self._seed)
            child.send(Configure(target=self._target, plan=seeded, first_request=first))

    def _on_frame(self, frame: FromWorker) -> None:
        now = self._clock.monotonic()
        match frame:
            case WorkerReady():
                self._open_files = frame.open_files
                self._settled.set()
            case Started():
                self._ledger.start(frame.requests)
                for request in frame.requests:
                    self._conductor.on_started(request.step, request.at)
            case Ended():
                self._ledger.end(frame.step, frame.requests, frame.gaps)
                self._on_event(RequestsEnded(at=now, requests=frame.requests, gaps=frame.gaps))
            case StepDrained():
                self._apply(self._conductor.on_drained(frame.step, now))
            case Tick():
                self._on_event(_live(frame, client_bound=self._watch.add(frame)))

    def _on_lost(self, why: str) -> None:
        """Count what it had open as cancelled; the next start brings another worker."""
        self._child = None
        self._why_lost = why
        self._settled.set()
        now = self._clock.monotonic()
        self._on_event(Notice(at=now, severity=Severity.ERROR, text=why))
        for records in self._ledger.cancel_open(why).values():
            self._on_event(RequestsEnded(at=now, requests=records))
        self._apply(self._conductor.on_lost(why, now))

    # -- what the conductor decides ------------------------------------------------------------

    def _apply(self, outputs: Iterable[Output]) -> None:
        """Carry out what was decided, in order, also when an event's taker asks for more."""
        self._outputs.extend(outputs)
        if self._is_applying:
            return
        self._is_applying = True
        try:
            while self._outputs:
                self._carry_out(self._outputs.popleft())
        finally:
            self._is_applying = False
        if self.state is LoadState.IDLE:
            self._idle.set()
        else:
            self._idle.clear()
        self._set_timer()

    def _carry_out(self, output: Output) -> None:
        match output:
            case SetLoad() | Window() | Cancel():
                if self._child is not None:
                    self._child.send(output)
            case StepFinished():
                step = self._ledger.finish(output, self._clock.monotonic())
                if step is not None:
                    bound = self._watch.was_bound(step.opened_at, step.closed_at)
                    self._on_step_finished(dataclasses.replace(step, client_bound=bound))
            case LoadChanged() | StepBegan():
                self._on_event(output)

    def _set_timer(self) -> None:
        self._cancel_timer()
        deadline = self._conductor.deadline()
        if deadline is not None:
            wait_s = max(0.0, deadline - self._clock.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._poll)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _poll(self) -> None:
        self._apply(self._conductor.poll(self._clock.monotonic()))


def _live(tick: Tick, *, client_bound: bool) -> LoadTick:
    return LoadTick(
        at=tick.at,
        in_flight=tick.in_flight,
        interval_s=tick.interval_s,
        output_tokens=tick.output_tokens,
        requests_ok=tick.requests_ok,
        requests_failed=tick.requests_failed,
        ttft_p50_s=_median(tick.ttft),
        itl_p50_s=_median(tick.gaps),
        loop_lag_s=tick.loop_lag_s,
        cpu_percent=100 * tick.cpu_s / tick.interval_s if tick.interval_s > 0 else 0.0,
        path=tick.path,
        send_lag_p99_s=send_lag_p99_s(tick),
        client_bound=client_bound,
    )


def _median(counts: dict[int, int]) -> float | None:
    histogram = Histogram()
    histogram.merge(counts)
    return histogram.percentile(50)
