"""Sends requests: so many in flight, each replaced as soon as it ends (a closed loop), or each
when it is due, whatever is in flight (an open loop)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpu_dash.load.arrivals import gaps_of
from gpu_dash.load.exchange import Exchange
from gpu_dash.load.outbox import Outbox
from gpu_dash.load.prompt import RequestBodies
from gpu_dash.load.protocol import Cancel, Configure, SetLoad, StartedRequest, Window
from gpu_dash.load.pulse import Pulse
from gpu_dash.load.transport import Transport
from gpu_dash.model.load import Endpoint, Outcome, Target

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0

TransportFactory = Callable[[Target, Endpoint], Transport]


@dataclass
class _Step:
    number: int
    concurrency: int
    left_to_send: int | None
    places: int
    """Requests that may be in flight now."""
    gaps: Iterator[float] | None = None
    """Seconds between the requests of an open loop."""
    in_flight: int = 0
    is_closed: bool = False
    """It sends nothing more."""
    is_drained: bool = False
    """And all its requests have ended."""


class ClosedLoop:
    """Sends the requests of one step after the other.

    Args:
        tasks: runs the requests; one that fails in an unforeseen way ends the worker, loudly.
        outbox: where started and ended requests are reported.
        pulse: where their tokens are counted for the live figures.
        make_transport: makes the way to a target.
    """

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        outbox: Outbox,
        pulse: Pulse,
        make_transport: TransportFactory,
    ) -> None:
        self._tasks = tasks
        self._outbox = outbox
        self._pulse = pulse
        self._make_transport = make_transport
        self._configured: Configure | None = None
        self._transports: dict[tuple[Target, Endpoint], Transport] = {}
        self._bodies: RequestBodies | None = None
        self._next_request = 1
        self._windows: dict[int, Window] = {}
        self._current: _Step | None = None
        self._open: set[Exchange] = set()
        self._pauses = 0
        """Places that stay empty for a moment because their last request failed."""
        self._failures_in_a_row = 0

    @property
    def in_flight(self) -> frozenset[Exchange]:
        """The requests that are in flight."""
        return frozenset(self._open)

    @property
    def is_idle(self) -> bool:
        """Nothing is in flight and nothing will be sent."""
        return not self._open and self._current is None

    @property
    def path(self) -> str:
        """Name of the transport in use."""
        return "" if self._configured is None else self._transport_for(self._configured).path

    def configure(self, frame: Configure) -> None:
        """Take the target and the plan of the requests from now on."""
        self._configured = frame
        self._bodies = RequestBodies(frame.target.model, frame.plan)
        first = max(self._next_request, frame.first_request)
        self._next_request = first + (frame.request_offset - first) % frame.request_stride
        self._transport_for(frame)  # made now, so that the first request need not wait for it

    def set_load(self, frame: SetLoad) -> None:
        """Begin a step; the one before sends nothing more."""
        before, self._current = self._current, None
        if frame.rate is not None:
            self._begin_open_loop(frame, frame.rate)
        elif frame.concurrency > 0:
            self._begin_closed_loop(frame)
        if before is not None:
            self._close(before)

    def set_window(self, frame: Window) -> None:
        """Know which tokens and requests of a step count."""
        self._windows[frame.step] = frame

    def cancel(self, _frame: Cancel) -> None:
        """End all that is in flight, and send nothing more."""
        before, self._current = self._current, None
        if before is not None:
            self._close(before)
        for exchange in self._open:
            exchange.cancel()

    async def close(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            await transport.close()

    def _fill(self) -> None:
        step = self._current
        while (
            step is not None
            and step.gaps is None
            and len(self._open) + self._pauses < step.places
            and step.left_to_send != 0
        ):
            self._start(step)
        self._end_if_all_sent()

    def _end_if_all_sent(self) -> None:
        step = self._current
        if step is not None and step.left_to_send == 0:
            self._current = None
            self._close(step)

    def _begin_closed_loop(self, frame: SetLoad) -> None:
        places = frame.concurrency if frame.places is None else frame.places
        step = _Step(frame.step, frame.concurrency, frame.requests, places)
        self._current = step
        missing = places - len(self._open)
        if frame.spread_s > 0 and missing > 1:
            step.places = len(self._open) + 1
            self._widen_later(step, places, frame.spread_s / missing)
        self._fill()

    def _widen_later(self, step: _Step, places: int, interval_s: float) -> None:
        """Add a place in a while, and so on until there are all."""

        def widen() -> None:
            if step is self._current:
                step.places += 1
                self._fill()
                if step.places < places:
                    self._widen_later(step, places, interval_s)

        asyncio.get_running_loop().call_later(interval_s, widen)

    def _begin_open_loop(self, frame: SetLoad, rate: float) -> None:
        configured = self._configured
        if configured is None:
            raise RuntimeError("SetLoad before Configure: the agent broke the protocol")
        plan = configured.plan
        seed = plan.seed or random.SystemRandom().getrandbits(64)
        gaps = gaps_of(plan.arrival, rate, (seed, frame.step, configured.request_offset))
        step = _Step(frame.step, frame.concurrency, frame.requests, 0, gaps)
        self._current = step
        # workers that share a rate do not begin at the same moment
        share = configured.request_offset / configured.request_stride
        self._arrive_later(step, gaps, time.monotonic() + share / rate)

    def _arrive_later(self, step: _Step, gaps: Iterator[float], due_at: float) -> None:
        def arrive() -> None:
            next_at = due_at
            while step is self._current and next_at <= time.monotonic():
                self._start(step, due_at=next_at)
                next_at += next(gaps)
                self._end_if_all_sent()
            if step is self._current:
                self._arrive_later(step, gaps, next_at)

        wait_s = max(0.0, due_at - time.monotonic())
        asyncio.get_running_loop().call_later(wait_s, arrive)

    def _start(self, step: _Step, due_at: float | None = None) -> None:
        configured, bodies = self._configured, self._bodies
        if configured is None or bodies is None:
            raise RuntimeError("SetLoad before Configure: the agent broke the protocol")
        exchange = Exchange(
            request=self._next_request,
            step=step.number,
            concurrency=step.concurrency,
            plan=configured.plan,
            secret=configured.target.api_key,
            due_at=due_at,
        )
        self._next_request += configured.request_stride
        if step.left_to_send is not None:
            step.left_to_send -= 1
        step.in_flight += 1
        self._open.add(exchange)
        self._outbox.started(
            StartedRequest(exchange.request, step.number, step.concurrency, exchange.scheduled_at)
        )
        self._tasks.create_task(self._run(exchange, step, self._transport_for(configured), bodies))

    async def _run(
        self, exchange: Exchange, step: _Step, transport: Transport, bodies: RequestBodies
    ) -> None:
        await exchange.run(transport, bodies.make(exchange.request))
        if exchange.answer.prompt_tokens is not None:
            bodies.learn(exchange.request, exchange.answer.prompt_tokens)
        self._open.discard(exchange)
        self._report(exchange)
        if exchange.outcome is Outcome.OK:
            self._failures_in_a_row = 0
        elif exchange.outcome is not Outcome.CANCELLED:
            self._pause(max(1, step.places))
        step.in_flight -= 1
        self._forget_if_drained(step)
        self._fill()

    def _report(self, exchange: Exchange) -> None:
        window = self._windows.get(exchange.step)
        record = exchange.record(
            None if window is None else window.opens_at,
            None if window is None else window.closes_at,
        )
        self._outbox.ended(record, exchange.gaps() if record.counted else None)
        self._pulse.ended(exchange)

    def _pause(self, concurrency: int) -> None:
        """Keep the place of a failed request empty for a moment, longer while nothing succeeds.

        A server that is gone refuses thousands of requests a second; so many rows say no more
        than a few.
        """
        rounds = self._failures_in_a_row // concurrency
        self._failures_in_a_row += 1
        self._pauses += 1
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(rounds, 10))
        asyncio.get_running_loop().call_later(pause_s, self._end_pause)

    def _end_pause(self) -> None:
        self._pauses -= 1
        self._fill()

    def _close(self, step: _Step) -> None:
        step.is_closed = True
        self._forget_if_drained(step)

    def _forget_if_drained(self, step: _Step) -> None:
        if step.is_closed and step.in_flight == 0 and not step.is_drained:
            step.is_drained = True
            self._windows.pop(step.number, None)
            self._outbox.drained(step.number)

    def _transport_for(self, configured: Configure) -> Transport:
        key = (configured.target, configured.plan.endpoint)
        if key not in self._transports:
            self._transports[key] = self._make_transport(*key)
        return self._transports[key]
