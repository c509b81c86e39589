"""The load as the agent drives it: a real worker process against a server that misbehaves."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TypeVar

import psutil
import pytest

from gpu_dash.load import child
from gpu_dash.load.driver import FinishedStep, LoadDriver
from gpu_dash.model.errors import AgentError, UsageError
from gpu_dash.model.events import Event, LoadChanged, LoadTick, Notice, RequestsEnded, StepBegan
from gpu_dash.model.load import (
    Arrival,
    LoadMode,
    LoadPlan,
    LoadState,
    Outcome,
    RequestRecord,
    Target,
)
from tests.fakes.llm_server import LlmServer, llm_server

KEY = "sk-0123456789-never-to-be-seen"
PATIENCE_S = 15.0

T = TypeVar("T")


class Rig:
    """A driver, the server it loads, and all that came out."""

    def __init__(self, server: LlmServer) -> None:
        self.server = server
        self.events: list[Event] = []
        self.finished: list[FinishedStep] = []
        self.changed = asyncio.Event()
        self.driver = LoadDriver(self._take, self.finished.append)

    def _take(self, event: Event) -> None:
        self.events.append(event)
        self.changed.set()

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    async def next_of(self, kind: type[T], count: int = 1) -> T:
        """Wait until so many of these have come; the last of them."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.of(kind)) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.of(kind)[count - 1]

    async def until(self, state: LoadState) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.driver.state is not state:
                self.changed.clear()
                await self.changed.wait()

    def records(self) -> list[RequestRecord]:
        return [record for event in self.of(RequestsEnded) for record in event.requests]

    def worker(self) -> psutil.Process:
        (process,) = (
            process
            for process in psutil.Process().children()
            if "gpu_dash.load.worker" in process.cmdline()
        )
        return process

    async def run(self, plan: LoadPlan) -> None:
        self.driver.start_ramp(plan)
        async with asyncio.timeout(PATIENCE_S):
            await self.driver.finished()


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    async with llm_server() as server:
        made = Rig(server)
        made.driver.set_target(Target(base_url=server.url, model="m", api_key=KEY))
        try:
            await made.driver.start()
            yield made
        finally:
            await made.driver.close()


def plan(
    *ramp: int,
    step_s: float = 0.4,
    warmup_s: float = 0.2,
    requests: int | None = None,
    output_tokens: int = 8,
    timeout_s: float = 10.0,
    stall_s: float = 5.0,
) -> LoadPlan:
    return LoadPlan(
        ramp=ramp,
        step_s=step_s,
        warmup_s=warmup_s,
        requests=requests,
        output_tokens=output_tokens,
        timeout_s=timeout_s,
        stall_s=stall_s,
        prompt_tokens=4,
    )


async def test_a_ramp_from_start_to_rest() -> None:
    async with rig() as r:
        r.server.ttft_s, r.server.gap_s = 0.02, 0.005
        await r.run(plan(1, 3))
        records = r.records()
        numbers = [record.request for record in records]
        assert sorted(numbers) == list(range(1, len(r.server.arrived) + 1))
        assert {record.outcome for record in records} == {Outcome.OK}
        assert {(record.step, record.concurrency) for record in records} == {(1, 1), (2, 3)}
        assert r.server.most_in_flight == 3
        assert [step.step for step in r.finished] == [1, 2]
        for step in r.finished:
            assert step.requests == tuple(x for x in records if x.step == step.step)
            assert step.closed_at - step.opened_at == pytest.approx(0.4)
            inside = [
                x for x in step.requests if x.counted and x.sent + (x.e2e_s or 0) < step.closed_at
            ]
            assert inside
            assert all(x.tokens_in_window == x.output_tokens == 8 for x in inside)
            assert sum(step.gaps.values()) == 7 * sum(x.counted for x in step.requests)
            for x in step.requests:
                assert x.counted is (step.opened_at <= x.sent < step.closed_at)
                assert x.ttft_s is not None
                assert x.ttft_s >= 0.02
        states = [(event.state, event.step) for event in r.of(LoadChanged)]
        assert states[0] == (LoadState.WARMUP, 1)
        assert states[-2:] == [(LoadState.DRAINING, 2), (LoadState.IDLE, 2)]
        began = {event.step: event for event in r.of(StepBegan)}
        assert {step: event.at for step, event in began.items()} == {
            step.step: step.opened_at for step in r.finished
        }
        ended_before = max(x.sent + (x.e2e_s or 0) for x in r.finished[0].requests)
        assert r.finished[1].opened_at > ended_before


async def test_ticks_say_what_happens_now_and_end_with_zeros() -> None:
    async with rig() as r:
        r.server.gap_s = 0.01
        await r.run(plan(2, step_s=0.8))
        while (await r.next_of(LoadTick, len(r.of(LoadTick)) + 1)).in_flight:
            pass
        ticks = r.of(LoadTick)
        assert sum(tick.output_tokens for tick in ticks) == 8 * len(r.records())
        assert sum(tick.requests_ok for tick in ticks) == len(r.records())
        busy = next(tick for tick in ticks if tick.itl_p50_s is not None and tick.ttft_p50_s)
        assert busy.in_flight == 2
        assert busy.path == "direct"
        assert busy.itl_p50_s is not None
        assert busy.itl_p50_s >= 0.009
        assert 0 < busy.cpu_percent < 100


async def test_a_step_of_so_many_requests_sends_exactly_those() -> None:
    async with rig() as r:
        await r.run(plan(2, 4, requests=25, step_s=60.0, warmup_s=60.0))
        assert len(r.server.arrived) == 50
        assert [len(step.requests) for step in r.finished] == [25, 25]
        for step in r.finished:
            assert all(x.counted and x.tokens_in_window == 8 for x in step.requests)
            assert step.opened_at == min(x.sent for x in step.requests)
            assert step.closed_at == max(x.sent + (x.e2e_s or 0) for x in step.requests)


async def test_keys_change_the_load_at_once_and_less_lets_requests_end() -> None:
    async with rig() as r:
        r.server.ttft_s = 0.3
        async with asyncio.timeout(PATIENCE_S):
            r.driver.set_concurrency(2)
            await r.server.until(2)
            r.driver.set_concurrency(5)
            await r.server.until(5)
            r.driver.set_concurrency(1)
            await r.server.until(1)
        assert r.server.most_in_flight == 5
        assert {x.outcome for x in r.records()} <= {Outcome.OK}
        assert r.of(LoadChanged)[-1].mode is LoadMode.MANUAL


async def test_a_rate_is_changed_while_it_runs_and_given_up_for_a_concurrency() -> None:
    async with rig() as r:
        r.driver.offer(LoadPlan(arrival=Arrival.CONSTANT, warmup_s=0.0, output_tokens=2))
        r.driver.set_rate(20.0)
        async with asyncio.timeout(PATIENCE_S):
            while len(r.server.arrived) < 5:
                await asyncio.sleep(0.005)
            r.driver.set_rate(100.0)
            while len(r.server.arrived) < 25:
                await asyncio.sleep(0.005)
            r.driver.set_concurrency(1)
            while not any(record.step == 3 for record in r.records()):
                await asyncio.sleep(0.005)
        await r.driver.stop()
        due = {step: [x.scheduled for x in r.records() if x.step == step] for step in (1, 2)}
        for step, gap_s in ((1, 0.05), (2, 0.01)):
            gaps = [later - earlier for earlier, later in pairwise(sorted(due[step]))]
            assert gaps == pytest.approx([gap_s] * len(gaps))
        changes = [(x.step, x.concurrency, x.request_rate) for x in r.of(LoadChanged)]
        assert [*dict.fromkeys(changes)][1:4] == [(1, 0, 20.0), (2, 0, 100.0), (3, 1, None)]
        assert [(x.concurrency, x.request_rate) for x in r.finished][:2] == [
            (None, 20.0),
            (None, 100.0),
        ]


async def test_a_rate_that_nobody_can_send_is_refused() -> None:
    async with rig() as r:
        for rate in (0.0, -1.0, float("nan"), 1e9):
            with pytest.raises(UsageError, match="requests per second"):
                r.driver.set_rate(rate)
        assert r.driver.state is LoadState.IDLE


async def test_pause_lets_requests_end_and_resume_goes_on() -> None:
    async with rig() as r:
        r.server.gap_s = 0.01
        r.driver.start_ramp(plan(2, 4, step_s=30.0, warmup_s=0.0))
        await r.next_of(StepBegan)
        await r.next_of(RequestsEnded)
        r.driver.pause()
        async with asyncio.timeout(PATIENCE_S):
            await r.server.until(0)
            while not r.finished:
                await asyncio.sleep(0.01)
        assert r.driver.state is LoadState.PAUSED
        assert len(r.server.arrived) == len(r.records()) == len(r.finished[0].requests)
        assert {x.outcome for x in r.records()} == {Outcome.OK}
        r.driver.resume()
        async with asyncio.timeout(PATIENCE_S):
            await r.server.until(2)
        assert r.of(LoadChanged)[-1].concurrency == 2
        assert [step.step for step in r.finished] == [1]


async def test_stop_cancels_what_is_in_flight_and_counts_it() -> None:
    async with rig() as r:
        r.server.failure = "silent"
        r.driver.set_concurrency(4)
        async with asyncio.timeout(PATIENCE_S):
            await r.server.until(4)
        began = time.monotonic()
        await r.driver.stop()
        assert time.monotonic() - began < 2
        assert [x.outcome for x in r.records()] == [Outcome.CANCELLED] * 4
        assert r.driver.state is LoadState.IDLE
        async with asyncio.timeout(PATIENCE_S):
            await r.server.until(0)


@pytest.mark.parametrize(
    ("failure", "outcome", "says"),
    [
        ("unauthorized", Outcome.UNAUTHORIZED, "HTTP 401"),
        ("stall", Outcome.STALLED, "no data for 0.3 s"),
        ("silent", Outcome.TIMEOUT, "not ended after 0.8 s"),
        ("disconnect", Outcome.DISCONNECTED, "closed the connection"),
        ("error", Outcome.ERROR_IN_STREAM, "out of memory"),
        ("refused", Outcome.REFUSED, "Connect"),
    ],
)
async def test_a_failure_has_its_name_and_is_no_success(
    failure: str, outcome: Outcome, says: str
) -> None:
    async with rig() as r:
        if failure == "refused":
            with socket.socket() as shut:
                shut.bind(("127.0.0.1", 0))
                url = f"http://127.0.0.1:{shut.getsockname()[1]}"
                r.driver.set_target(Target(base_url=url, model="m", api_key=KEY))
                await r.run(plan(2, requests=2, timeout_s=0.8, stall_s=0.3))
        else:
            r.server.failure = failure
            await r.run(plan(2, requests=2, timeout_s=0.8, stall_s=0.3))
        assert [x.outcome for x in r.records()] == [outcome] * 2
        for record in r.records():
            assert says in record.detail
            assert KEY not in record.detail
            assert record.detail.isprintable()
        assert sum(tick.requests_ok for tick in r.of(LoadTick)) == 0


async def test_a_killed_worker_is_said_counted_and_replaced() -> None:
    async with rig() as r:
        r.server.gap_s = 0.5
        r.driver.start_ramp(plan(3, step_s=60.0, warmup_s=0.0))
        async with asyncio.timeout(PATIENCE_S):
            await r.server.until(3)
        await r.next_of(StepBegan)
        await r.next_of(LoadTick)
        r.worker().send_signal(signal.SIGKILL)
        notice = await r.next_of(Notice)
        assert "load worker" in notice.text
        assert "signal 9" in notice.text
        assert r.driver.state is LoadState.IDLE
        assert r.of(LoadChanged)[-1].detail == notice.text
        assert [x.outcome for x in r.records()] == [Outcome.CANCELLED] * 3
        (step,) = r.finished
        assert len(step.requests) == 3

        r.server.gap_s = 0.0
        await r.run(plan(2, requests=4))
        numbers = [x.request for x in r.records()]
        assert len(set(numbers)) == len(numbers) == 7
        assert r.finished[-1].step == 2


async def test_stop_ends_a_worker_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_dash.load.driver._STOP_TIMEOUT_S", 0.2)
    async with rig() as r:
        r.server.gap_s = 0.5
        r.driver.set_concurrency(2)
        async with asyncio.timeout(PATIENCE_S):
            await r.server.until(2)
        worker = r.worker()
        worker.suspend()
        async with asyncio.timeout(PATIENCE_S):
            await r.driver.stop()
        assert r.driver.state is LoadState.IDLE
        assert len(r.of(Notice)) == 1


async def test_the_key_goes_to_the_server_and_stands_nowhere_else() -> None:
    async with rig() as r:
        await r.run(plan(1, requests=1))
        assert r.server.arrived[0].headers["authorization"] == f"Bearer {KEY}"
        worker = r.worker()
        assert KEY not in " ".join(worker.cmdline())
        assert KEY not in str(worker.environ())
        assert all(KEY not in repr(event) for event in r.events)


async def test_the_worker_may_open_as_many_files_as_the_host_allows() -> None:
    async with rig() as r:
        soft, hard = r.worker().rlimit(psutil.RLIMIT_NOFILE)
        assert soft == hard


async def test_more_requests_than_open_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = ("sh", "-c", f"ulimit -n 128; exec {shlex.join(child._COMMAND)}")
    monkeypatch.setattr(child, "_COMMAND", limited)
    async with rig() as r:
        with pytest.raises(UsageError, match=r"concurrency: 100 .* hard limit is 128"):
            r.driver.set_concurrency(100)
        with pytest.raises(UsageError, match="concurrency: 100"):
            r.driver.start_ramp(plan(1, 100))
        await r.run(plan(8, requests=16))
        assert {x.outcome for x in r.records()} == {Outcome.OK}


async def test_a_worker_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; print('Traceback', file=sys.stderr); sys.exit('no such module')"
    monkeypatch.setattr(child, "_COMMAND", (sys.executable, "-c", script))
    events: list[Event] = []
    driver = LoadDriver(events.append, lambda _: None)
    with pytest.raises(AgentError, match="exit code 1: no such module"):
        await driver.start()
    assert [type(event) for event in events] == [Notice]
    await driver.close()


async def test_a_load_without_a_target_is_refused_and_a_running_one_keeps_its_plan() -> None:
    driver = LoadDriver(lambda _: None, lambda _: None)
    with pytest.raises(UsageError, match="no server"):
        driver.set_concurrency(1)
    with pytest.raises(UsageError, match="no server"):
        driver.start_ramp()
    await driver.close()
    async with rig() as r:
        r.driver.set_concurrency(1)
        with pytest.raises(UsageError, match="stop it"):
            r.driver.offer(plan(1))


async def test_commands_given_inside_an_event_come_after_what_was_decided() -> None:
    async with rig() as r:

        def stop_at_the_first_window(event: Event) -> None:
            r._take(event)
            if isinstance(event, StepBegan):
                r.driver.set_concurrency(0)

        r.driver._on_event = stop_at_the_first_window
        await r.run(plan(2, step_s=60.0, warmup_s=0.05))
        async with asyncio.timeout(PATIENCE_S):
            await r.server.until(0)
        assert [event.state for event in r.of(LoadChanged)][-1] is LoadState.IDLE


def test_a_worker_ends_when_its_stdin_closes() -> None:
    worker = subprocess.Popen(
        [*child._COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = worker.communicate(timeout=PATIENCE_S)
    assert worker.returncode == 0
    assert b"WorkerReady" in out
    assert err == b""


async def test_a_worker_ends_when_the_agent_is_killed() -> None:
    script = (
        "import asyncio, sys\n"
        "from gpu_dash.load.driver import LoadDriver\n"
        "from gpu_dash.model.load import Target\n"
        "async def main():\n"
        "    driver = LoadDriver(lambda _: None, lambda _: None)\n"
        "    driver.set_target(Target(base_url=sys.argv[1], model='m'))\n"
        "    await driver.start()\n"
        "    driver.set_concurrency(2)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    async with llm_server() as server:
        server.failure = "silent"
        agent = await asyncio.create_subprocess_exec(sys.executable, "-c", script, server.url)
        async with asyncio.timeout(PATIENCE_S):
            await server.until(2)
            (worker,) = psutil.Process(agent.pid).children()
            os.kill(agent.pid, signal.SIGKILL)
            await agent.wait()
            await server.until(0)
            await asyncio.to_thread(psutil.wait_procs, [worker], PATIENCE_S)
        assert not worker.is_running()


async def test_several_workers_are_one_load() -> None:
    async with llm_server() as server:
        made = Rig(server)
        server.ttft_s = 0.02
        made.driver = LoadDriver(made._take, made.finished.append, workers=2)
        made.driver.set_target(Target(base_url=server.url, model="m"))
        await made.driver.start()
        workers = psutil.Process().children()
        assert len(workers) == 2
        await made.run(plan(5, 1, requests=12))
        await made.driver.close()
        assert [len(step.requests) for step in made.finished] == [12, 12]
        records = made.records()
        assert len({record.request for record in records}) == 24
        assert {(record.step, record.concurrency) for record in records} == {(1, 5), (2, 1)}
        assert server.most_in_flight == 5
        assert not any(worker.is_running() for worker in workers)


async def test_one_lost_worker_ends_the_load_and_all_of_them() -> None:
    async with llm_server() as server:
        server.gap_s = 0.05
        made = Rig(server)
        server.ttft_s = 0.02
        made.driver = LoadDriver(made._take, made.finished.append, workers=2)
        made.driver.set_target(Target(base_url=server.url, model="m"))
        await made.driver.start()
        workers = psutil.Process().children()
        made.driver.set_concurrency(4)
        async with asyncio.timeout(PATIENCE_S):
            # a tick of both comes after their reports: it knows of all that it will have to end
            while not any(tick.in_flight == 4 for tick in made.of(LoadTick)):
                await asyncio.sleep(0.005)
        workers[0].kill()
        await made.until(LoadState.IDLE)
        assert [record.outcome for record in made.records()] == [Outcome.CANCELLED] * 4
        assert len(made.of(Notice)) == 1
        await asyncio.to_thread(psutil.wait_procs, workers, PATIENCE_S)
        await made.driver.close()


def test_the_agents_side_does_not_load_the_http_client() -> None:
    script = (
        "import sys, gpu_dash.load.driver\n"
        "print([name for name in ('httpx', 'anyio', 'ssl') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip().replace("'ssl'", "") == "[]"
