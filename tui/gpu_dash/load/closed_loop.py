"""Sends requests: so many in flight, each replaced as soon as it ends (a closed loop), or each
when it is due, whatever is in flight (an open loop)."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from gpu_dash.load.arrivals import due_times
from gpu_dash.load.asks import Ask, Asks
from gpu_dash.load.conversation import Conversation, Transcribing
from gpu_dash.load.exchange import Exchange
from gpu_dash.load.outbox import Outbox
from gpu_dash.load.protocol import Cancel, Configure, SetLoad, StartedRequest, Window
from gpu_dash.load.pulse import Pulse
from gpu_dash.load.retries import tell_retries, wait_before_retry_s
from gpu_dash.load.trace import TraceEntry
from gpu_dash.load.transport import Transport
from gpu_dash.model.load import Endpoint, LoadPlan, Outcome, Target

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_STEP_STRIDE = 1_000_003
"""From the first prompt of a step to the first of the next: more than a step sends, and a prime,
so that no two steps begin at the same place of a file."""

TransportFactory = Callable[[Target, Endpoint], Transport]


@dataclass
class _Step:
    number: int
    concurrency: int
    left_to_send: int | None
    places: int
    """Requests that may be in flight now."""
    indexes: Iterator[int]
    """Which of the step's requests, counted over all workers, this worker sends."""
    first_position: int
    """Which prompt the step's first request has."""
    arrivals: Iterator[float] | None = None
    """Moments at which the requests of an open loop are due."""
    trace: tuple[TraceEntry, ...] = ()
    """What its requests ask, where they are those of a trace."""
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
        self._asks: Asks | None = None
        self._next_request = 1
        self._windows: dict[int, Window] = {}
        self._current: _Step | None = None
        self._open: set[Exchange] = set()
        self._cancelled = asyncio.Event()
        """Set, and replaced, when all that is in flight is ended."""
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
        self._asks = Asks(frame.target.model, frame.plan)
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
        self._cancelled.set()
        self._cancelled = asyncio.Event()

    async def close(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            await transport.close()

    def _fill(self) -> None:
        step = self._current
        while (
            step is not None
            and step.arrivals is None
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
        configured, _ = self._prepared()
        step = self._step_of(frame, configured.plan, places)
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
        configured, asks = self._prepared()
        plan = configured.plan
        step = self._step_of(frame, plan, places=0)
        offsets: Iterator[float]
        if frame.replays:
            step.trace = asks.trace
            offsets = (entry.at_s / plan.trace_speed for entry in asks.trace)
        else:
            offsets = due_times(plan.arrival, rate, (plan.seed, frame.step))
        due = (frame.begins_at + offset for offset in offsets)
        step.arrivals = itertools.islice(due, frame.share_index, None, frame.share_count)
        self._current = step
        self._await_arrival(step, step.arrivals)

    def _await_arrival(self, step: _Step, arrivals: Iterator[float]) -> None:
        """Send the next request when it is due, and so on; many at once where many are due."""
        due_at = next(arrivals, None)
        while due_at is not None and step is self._current and due_at <= time.monotonic():
            self._start(step, due_at)
            self._end_if_all_sent()
            due_at = next(arrivals, None)
        if due_at is not None and step is self._current:
            due = itertools.chain([due_at], arrivals)
            wait_s = due_at - time.monotonic()
            asyncio.get_running_loop().call_later(wait_s, self._await_arrival, step, due)

    def _step_of(self, frame: SetLoad, plan: LoadPlan, places: int) -> _Step:
        stride = _STEP_STRIDE if frame.requests is None else plan.requests or _STEP_STRIDE
        return _Step(
            number=frame.step,
            concurrency=frame.concurrency,
            left_to_send=frame.requests,
            places=places,
            indexes=itertools.count(frame.share_index, frame.share_count),
            first_position=(frame.step - 1) * stride,
        )

    def _prepared(self) -> tuple[Configure, Asks]:
        if self._configured is None or self._asks is None:
            raise RuntimeError("SetLoad before Configure: the agent broke the protocol")
        return self._configured, self._asks

    def _start(self, step: _Step, due_at: float | None = None) -> None:
        configured, asks = self._prepared()
        index = next(step.indexes)
        entry = step.trace[index] if step.trace else None
        ask = asks.next(self._next_request, step.first_position + index, entry)
        exchange = Exchange(
            request=self._next_request,
            step=step.number,
            concurrency=step.concurrency,
            plan=ask.plan,
            secrets=configured.target.secrets,
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
        transport = self._transport_for(configured)
        self._tasks.create_task(self._run(exchange, step, transport, asks, ask))

    async def _run(
        self, exchange: Exchange, step: _Step, transport: Transport, asks: Asks, ask: Ask
    ) -> None:
        body = asks.body(ask)
        if ask.conversation is None:
            attempts = await self._send(exchange, transport, body, ask.plan.retries)
        else:
            transcribing = Transcribing(transport)
            attempts = await self._send(exchange, transcribing, body, ask.plan.retries)
            if attempts[-1].outcome is Outcome.OK:
                asks.answered(ask.conversation, transcribing.text())
        exchange = attempts[-1]
        if exchange.answer.prompt_tokens is not None:
            asks.counted(ask, exchange.answer.prompt_tokens)
        self._open.discard(exchange)
        self._report(attempts, ask.conversation)
        if exchange.outcome is Outcome.OK:
            self._failures_in_a_row = 0
        elif exchange.outcome is not Outcome.CANCELLED:
            self._pause(max(1, step.places))
        step.in_flight -= 1
        self._forget_if_drained(step)
        self._fill()

    async def _send(
        self, exchange: Exchange, transport: Transport, body: bytes, retries: int
    ) -> list[Exchange]:
        """Send a request until it is taken, or often enough; every attempt, the last one last."""
        attempts = [exchange]
        await exchange.run(transport, body)
        while (wait_s := wait_before_retry_s(attempts, retries)) is not None:
            if await self._is_cancelled_within(wait_s):
                break
            self._open.discard(attempts[-1])
            attempts.append(attempts[-1].again())
            self._open.add(attempts[-1])
            await attempts[-1].run(transport, body)
        return attempts

    async def _is_cancelled_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._cancelled.wait()
        except TimeoutError:
            return False
        return True

    def _report(self, attempts: list[Exchange], conversation: Conversation | None) -> None:
        exchange = attempts[-1]
        window = self._windows.get(exchange.step)
        record = exchange.record(
            None if window is None else window.opens_at,
            None if window is None else window.closes_at,
        )
        record = tell_retries(record, attempts[:-1])
        if conversation is not None:
            record = msgspec.structs.replace(
                record, conversation=conversation.number, turn=conversation.turn
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
