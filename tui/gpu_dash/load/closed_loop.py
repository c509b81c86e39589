"""The closed loop: so many requests in flight, each replaced as soon as it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

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
        self._next_request = max(self._next_request, frame.first_request)
        self._transport_for(frame)  # made now, so that the first request need not wait for it

    def set_load(self, frame: SetLoad) -> None:
        """Begin a step; the one before sends nothing more."""
        before, self._current = self._current, None
        if frame.concurrency > 0:
            self._current = _Step(frame.step, frame.concurrency, frame.requests)
            self._fill()
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
            and len(self._open) + self._pauses < step.concurrency
            and step.left_to_send != 0
        ):
            self._start(step)
        if step is not None and step.left_to_send == 0:
            self._current = None
            self._close(step)

    def _start(self, step: _Step) -> None:
        configured, bodies = self._configured, self._bodies
        if configured is None or bodies is None:
            raise RuntimeError("SetLoad before Configure: the agent broke the protocol")
        exchange = Exchange(
            request=self._next_request,
            step=step.number,
            concurrency=step.concurrency,
            plan=configured.plan,
            secret=configured.target.api_key,
        )
        self._next_request += 1
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
            self._pause(step.concurrency)
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
