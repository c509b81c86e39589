"""So many requests in flight, each replaced at once, each under the step that sent it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import msgspec
import pytest

from gpu_dash.load.closed_loop import ClosedLoop
from gpu_dash.load.outbox import Outbox
from gpu_dash.load.protocol import (
    Cancel,
    Configure,
    Ended,
    FromWorker,
    SetLoad,
    Started,
    StepDrained,
    Window,
)
from gpu_dash.load.pulse import Pulse
from gpu_dash.load.transport import ResponseSink
from gpu_dash.model.load import Arrival, LoadPlan, Outcome, RequestRecord, Target
from tests.unit.load.scripted import ScriptedTransport, broken, forever, quick, say

TARGET = Target(base_url="http://127.0.0.1:1", model="m")
PLAN = LoadPlan(output_tokens=2, prompt_tokens=4)


class Bench:
    """A closed loop on a scripted transport, and all that it reported."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.sent: list[FromWorker] = []
        self.transport = ScriptedTransport(self._held)
        self.holding = asyncio.Event()
        self.holding.set()
        self.outbox = Outbox(self.sent.append)
        self.pulse = Pulse()
        self.loop = ClosedLoop(tasks, self.outbox, self.pulse, lambda *_: self.transport)
        self.loop.configure(Configure(target=TARGET, plan=PLAN, first_request=1))

    async def _held(self, sink: ResponseSink) -> None:
        """A quick answer, once the test lets it come."""
        sink.on_head(200, is_delimited=True)
        await self.holding.wait()
        say(sink, "a", "b", finish="length", usage=2)

    def load(self, step: int, concurrency: int, requests: int | None = None) -> None:
        self.loop.set_load(SetLoad(step=step, concurrency=concurrency, requests=requests))

    async def until_drained(self, step: int) -> None:
        while StepDrained(step=step) not in self.sent:
            await asyncio.sleep(0.001)

    def records(self) -> list[RequestRecord]:
        self.outbox.flush()
        return [r for frame in self.sent if isinstance(frame, Ended) for r in frame.requests]

    def started(self) -> list[tuple[int, int, int]]:
        self.outbox.flush()
        return [
            (r.request, r.step, r.concurrency)
            for frame in self.sent
            if isinstance(frame, Started)
            for r in frame.requests
        ]


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    async with asyncio.TaskGroup() as tasks:
        made = Bench(tasks)
        yield made
        made.loop.cancel(Cancel())


async def test_the_places_are_filled_at_once_and_stay_filled() -> None:
    async with bench() as b:
        b.holding.clear()
        b.load(1, 3)
        assert len(b.loop.in_flight) == 3
        first = b.loop.in_flight
        b.holding.set()
        while b.loop.in_flight & first:
            await asyncio.sleep(0)
        assert len(b.loop.in_flight) == 3


async def test_more_load_starts_at_once_and_less_lets_requests_end() -> None:
    async with bench() as b:
        b.holding.clear()
        b.load(1, 2)
        b.load(2, 5)
        assert sorted(e.step for e in b.loop.in_flight) == [1, 1, 2, 2, 2]
        b.load(3, 1)
        assert len(b.loop.in_flight) == 5
        b.holding.set()
        await b.until_drained(1)
        await b.until_drained(2)
        assert len(b.loop.in_flight) == 1
        assert {(r.step, r.concurrency, r.outcome) for r in b.records() if r.step < 3} == {
            (1, 2, Outcome.OK),
            (2, 5, Outcome.OK),
        }


async def test_exactly_so_many_requests_are_sent_failures_included() -> None:
    async with bench() as b:
        b.transport.script = broken(Outcome.DISCONNECTED, "a")
        b.load(1, 4, requests=10)
        await b.until_drained(1)
        assert len(b.transport.bodies) == len(b.records()) == 10
        assert b.loop.is_idle


async def test_fewer_requests_than_places() -> None:
    async with bench() as b:
        b.load(1, 8, requests=3)
        await b.until_drained(1)
        assert len(b.transport.bodies) == 3


async def test_a_step_is_drained_once_and_after_its_last_request() -> None:
    async with bench() as b:
        b.load(1, 4)
        await asyncio.sleep(0.01)
        b.load(1, 0)
        await b.until_drained(1)
        b.load(1, 0)
        b.loop.cancel(Cancel())
        assert b.sent.count(StepDrained(step=1)) == 1
        assert isinstance(b.sent[-1], StepDrained)
        assert len(b.records()) == len(b.started())
        assert b.loop.is_idle


async def test_a_step_that_has_nothing_in_flight_is_drained_at_once() -> None:
    async with bench() as b:
        b.transport.script = broken(Outcome.REFUSED)
        b.load(1, 1)
        while b.loop.in_flight:
            await asyncio.sleep(0)
        b.load(2, 1)  # while the place of the failed request is still empty
        assert StepDrained(step=1) in b.sent


async def test_the_window_of_its_step_decides_what_a_request_counts_for() -> None:
    async with bench() as b:
        b.loop.set_window(Window(step=1, opens_at=0.0, closes_at=None))
        b.load(1, 1, requests=1)
        await b.until_drained(1)
        b.loop.set_window(Window(step=2, opens_at=0.0, closes_at=1.0))
        b.load(2, 1, requests=1)
        await b.until_drained(2)
        b.load(3, 1, requests=1)
        await b.until_drained(3)
        counts = [(r.step, r.counted, r.tokens_in_window) for r in b.records()]
        assert counts == [(1, True, 2), (2, False, 0), (3, False, 0)]
        gaps = [sum(frame.gaps.values()) for frame in b.sent if isinstance(frame, Ended)]
        assert gaps == [1, 0, 0]


async def test_cancel_ends_what_is_in_flight() -> None:
    async with bench() as b:
        b.transport.script = forever
        b.load(1, 3)
        await asyncio.sleep(0.01)
        b.load(2, 4)  # its request has not run yet when it is cancelled
        b.loop.cancel(Cancel())
        await b.until_drained(1)
        await b.until_drained(2)
        assert [r.outcome for r in b.records()] == [Outcome.CANCELLED] * 4
        assert len(b.transport.bodies) == 3


async def test_requests_are_numbered_once() -> None:
    async with bench() as b:
        b.load(1, 2, requests=4)
        await b.until_drained(1)
        b.loop.configure(Configure(target=TARGET, plan=PLAN, first_request=3))
        b.load(2, 1, requests=1)
        await b.until_drained(2)
        b.loop.configure(Configure(target=TARGET, plan=PLAN, first_request=90))
        b.load(3, 1, requests=1)
        await b.until_drained(3)
        assert [request for request, _, _ in b.started()] == [1, 2, 3, 4, 5, 90]
        prompts = [tuple(json.loads(body)["prompt"]) for body in b.transport.bodies]
        assert len(set(prompts)) == 6


async def test_a_server_that_refuses_is_not_asked_thousands_of_times() -> None:
    async with bench() as b:
        b.transport.script = broken(Outcome.REFUSED)
        b.load(1, 2)
        await asyncio.sleep(0.5)
        assert 4 <= len(b.transport.bodies) <= 20
        b.transport.script = quick
        asked = len(b.transport.bodies)
        async with asyncio.timeout(5):
            while len(b.transport.bodies) < asked + 100:
                await asyncio.sleep(0.001)


async def test_the_pulse_counts_each_token_once() -> None:
    async with bench() as b:
        counted = []

        def tick() -> int:
            made = b.pulse.tick(
                b.loop.in_flight, at=0.0, interval_s=1.0, path="", loop_lag_s=0.0, cpu_s=0.0
            )
            counted.append((made.output_tokens, sum(made.ttft.values()), sum(made.gaps.values())))
            return made.requests_ok

        b.holding.clear()
        b.transport.script = forever  # one token, then nothing
        b.load(1, 2)
        await asyncio.sleep(0.01)
        tick()
        tick()
        b.transport.script = quick
        b.load(2, 4, requests=2)
        await b.until_drained(2)
        assert tick() == 2
        assert counted == [(2, 2, 0), (0, 0, 0), (4, 2, 2)]


async def test_a_load_before_a_target_is_the_agents_fault_and_loud() -> None:
    async with asyncio.TaskGroup() as tasks:
        loop = ClosedLoop(
            tasks, Outbox(lambda _: None), Pulse(), lambda *_: ScriptedTransport(quick)
        )
        with pytest.raises(RuntimeError, match="before Configure"):
            loop.set_load(SetLoad(step=1, concurrency=1))


async def test_places_that_are_spread_fill_one_after_the_other() -> None:
    async with bench() as b:
        b.holding.clear()
        b.loop.set_load(SetLoad(step=1, concurrency=5, spread_s=0.2))
        assert len(b.loop.in_flight) == 1
        async with asyncio.timeout(5):
            while len(b.loop.in_flight) < 5:
                await asyncio.sleep(0.002)
        b.outbox.flush()
        started = [r.at for f in b.sent if isinstance(f, Started) for r in f.requests]
        assert started[-1] - started[0] >= 0.15
        b.load(2, 7)
        assert len(b.loop.in_flight) == 7


async def test_an_open_loop_sends_when_it_is_due_whatever_is_in_flight() -> None:
    async with bench() as b:
        b.loop.configure(
            Configure(
                target=TARGET,
                plan=msgspec.structs.replace(PLAN, arrival=Arrival.CONSTANT),
                first_request=1,
            )
        )
        b.holding.clear()
        b.loop.set_window(Window(step=1, opens_at=0.0, closes_at=None))
        b.loop.set_load(SetLoad(step=1, concurrency=0, rate=100.0, requests=8))
        async with asyncio.timeout(5):
            while len(b.loop.in_flight) < 8:
                await asyncio.sleep(0.002)
        held_until = time.monotonic()
        b.holding.set()
        await b.until_drained(1)
        records = b.records()
        due = sorted(r.scheduled for r in records)
        assert [y - x for x, y in pairwise(due)] == pytest.approx([0.01] * 7)
        for record in records:
            assert record.sent >= record.scheduled
            assert record.ttft_s is not None
            assert record.scheduled + record.ttft_s >= held_until
        assert b.loop.is_idle


async def test_workers_that_share_the_numbers_never_give_the_same() -> None:
    given = []
    for offset in range(3):
        async with bench() as b:
            for first in (1, 20):
                b.loop.configure(
                    Configure(
                        target=TARGET,
                        plan=PLAN,
                        first_request=first,
                        request_stride=3,
                        request_offset=offset,
                    )
                )
                b.load(first, 1, requests=4 + offset)
                await b.until_drained(first)
            given += [request for request, _, _ in b.started()]
    assert len(set(given)) == len(given) == 30
    assert {request % 3 for request in given} == {0, 1, 2}
