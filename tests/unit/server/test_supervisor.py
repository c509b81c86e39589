"""The life of a server as events, played through a handle and a probe that do as they are told."""

from __future__ import annotations

import asyncio

import pytest

from gpu_dash.model.events import Event, Finding, Notice, ServerChanged, ServerMetricsRead
from gpu_dash.model.server import HandleKind, ServerState, ServerStatus
from gpu_dash.server import supervisor as module
from gpu_dash.server.endpoint import EndpointProbe
from gpu_dash.server.handles import Stopped
from gpu_dash.server.supervisor import ServerSupervisor
from tests.fakes.clock import ManualClock
from tests.unit.server.log_findings import found


class Handle:
    """A server that ends when it is told to."""

    pid = 1

    def __init__(self, kind: HandleKind = HandleKind.PROCESS) -> None:
        self.kind = kind
        self.ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self.stops: list[bool] = []
        self.leftovers: tuple[int, ...] = ()
        self.clearing = asyncio.Event()
        self.clearing.set()

    async def wait(self) -> int | None:
        return await asyncio.shield(self.ended)

    async def stop(self, *, starting: bool, grace_s: float) -> Stopped:
        self.stops.append(starting)
        if not self.ended.done():
            self.ended.set_result(0)
        return Stopped(exit_code=0, leftovers=self.leftovers)

    async def clear_leftovers(self) -> tuple[int, ...]:
        await self.clearing.wait()
        return self.leftovers


class Probe(EndpointProbe):
    """An endpoint whose answers are set."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")
        self.healthy = False
        self.lists_models = False
        self.page: str | None = None

    async def trouble(self) -> str:
        return "" if self.healthy else "http://h/health answers 503"

    async def is_reachable(self) -> bool:
        return self.lists_models

    async def metrics_page(self) -> str | None:
        return self.page


class Life:
    """A supervisor and all that it published."""

    def __init__(
        self,
        clock: ManualClock,
        *,
        kind: HandleKind = HandleKind.PROCESS,
        state: ServerState = ServerState.STARTING,
        ready_timeout_s: float = 100.0,
    ) -> None:
        self.clock = clock
        self.handle = Handle(kind)
        self.probe = Probe()
        self.events: list[Event] = []
        self.drained = 0
        self.supervisor = ServerSupervisor(
            self.handle,
            self.probe,
            ServerStatus(state=state, since=clock.monotonic(), kind=kind, base_url="http://h"),
            self.events.append,
            self._drain,
            clock,
            ready_timeout_s=ready_timeout_s,
            shutdown_timeout_s=0.0,
        )
        self.run = asyncio.create_task(self.supervisor.run())

    async def _drain(self) -> None:
        self.drained += 1

    async def until(self, state: ServerState) -> ServerStatus:
        async with asyncio.timeout(10):
            while self.supervisor.status.state is not state:
                await asyncio.sleep(0.001)
        return self.supervisor.status

    async def end(self, code: int | None) -> ServerStatus:
        self.handle.ended.set_result(code)
        await self.run
        return self.supervisor.status


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STARTING_POLL_S", 0.001)
    monkeypatch.setattr(module, "READY_POLL_S", 0.001)


async def test_ready_is_what_health_says_and_the_time_it_took_is_known(clock: ManualClock) -> None:
    life = Life(clock)
    clock.advance(42)
    life.probe.healthy = True
    status = await life.until(ServerState.READY)
    assert status.ready_after_s == pytest.approx(42)
    await life.end(0)


async def test_stages_come_from_the_log_while_it_starts_and_not_after(clock: ManualClock) -> None:
    life = Life(clock)
    life.supervisor.take_line("Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01]")
    assert life.supervisor.status.stage == "loading weights"
    assert life.supervisor.status.stage_progress == 0.5
    life.probe.healthy = True
    await life.until(ServerState.READY)
    life.supervisor.take_line("Capturing CUDA graphs: 10%")
    assert life.supervisor.status.stage == ""
    await life.end(0)


async def test_exit_code_0_that_nobody_asked_for_is_a_failure(clock: ManualClock) -> None:
    life = Life(clock)
    life.probe.healthy = True
    await life.until(ServerState.READY)
    status = await life.end(0)
    assert status.state is ServerState.FAILED
    assert life.drained == 1
    assert [event.kind for event in life.events if isinstance(event, Finding)] == ["server_exit"]


async def test_an_end_that_was_asked_for_is_a_stop(clock: ManualClock) -> None:
    life = Life(clock)
    life.probe.healthy = True
    await life.until(ServerState.READY)
    stopped = await life.supervisor.stop()
    await life.run
    assert stopped.exit_code == 0
    assert life.supervisor.status.state is ServerState.STOPPED
    assert life.handle.stops == [False]
    states = [event.status.state for event in life.events if isinstance(event, ServerChanged)]
    assert states[-2:] == [ServerState.STOPPING, ServerState.STOPPED]


async def test_the_watch_ends_only_when_nothing_of_the_server_is_left(clock: ManualClock) -> None:
    life = Life(clock)
    life.probe.healthy = True
    await life.until(ServerState.READY)
    cleared = asyncio.Event()
    stop_at_once = life.handle.stop

    async def stop_slowly(*, starting: bool, grace_s: float) -> Stopped:
        stopped = await stop_at_once(starting=starting, grace_s=grace_s)
        await cleared.wait()
        return stopped

    life.handle.stop = stop_slowly  # type: ignore[method-assign]
    stopping = asyncio.create_task(life.supervisor.stop())
    done, _ = await asyncio.wait({life.run}, timeout=0.05)
    assert not done
    cleared.set()
    await life.run
    assert life.supervisor.status.state is ServerState.STOPPED
    await stopping


async def test_a_stop_while_it_starts_says_so_to_the_handle(clock: ManualClock) -> None:
    life = Life(clock)
    await asyncio.sleep(0)
    await life.supervisor.stop()
    await life.run
    assert life.handle.stops == [True]


async def test_what_cannot_be_killed_is_named(clock: ManualClock) -> None:
    life = Life(clock)
    life.handle.leftovers = (77, 78)
    await asyncio.sleep(0)
    await life.supervisor.stop()
    await life.run
    assert "77, 78" in life.supervisor.status.detail


async def test_an_end_is_told_before_what_is_left_of_it_is_gone(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_dash.server.supervisor.TOLD_AFTER_S", 0.01)
    life = Life(clock)
    life.handle.clearing.clear()
    life.handle.ended.set_result(-9)
    async with asyncio.timeout(10):
        while not any(isinstance(event, Notice) for event in life.events):
            await asyncio.sleep(0.001)
    assert life.supervisor.status.state is not ServerState.FAILED

    life.handle.clearing.set()

    assert "SIGKILL" in (await life.until(ServerState.FAILED)).detail
    await life.run


async def test_a_failure_is_told_with_the_first_error_that_is_a_cause(clock: ManualClock) -> None:
    life = Life(clock)
    life.supervisor.take_finding(found(10, "follows", root=False))
    life.supervisor.take_finding(found(20, "the cause"))
    life.supervisor.take_finding(found(30, "a later one"))
    assert (await life.end(1)).detail == "exit code 1: the cause"


async def test_a_cause_that_turns_out_to_follow_from_another_is_dropped(
    clock: ManualClock,
) -> None:
    life = Life(clock)
    life.supervisor.take_finding(found(20, "looked like the cause"))
    life.supervisor.take_finding(found(20, "looked like the cause", root=False))
    life.supervisor.take_finding(found(30, "the cause"))
    assert (await life.end(1)).detail == "exit code 1: the cause"


async def test_without_an_error_the_last_line_is_what_it_had_to_say(clock: ManualClock) -> None:
    life = Life(clock)
    life.supervisor.take_line("python: No module named vllm")
    life.supervisor.take_line("")
    life.supervisor.take_line("INFO:     Finished server process [7]")
    life.supervisor.take_line("Capturing CUDA graphs (decode, FULL): 100%|█████| 51/51 [00:02]")
    assert (await life.end(1)).detail == "exit code 1: python: No module named vllm"


async def test_a_start_that_takes_too_long_is_ended_and_has_failed(clock: ManualClock) -> None:
    life = Life(clock, ready_timeout_s=60)
    clock.advance(61)
    status = await life.until(ServerState.FAILED)
    assert "not ready after 60 s" in status.detail
    assert life.handle.stops == [True]
    await life.run


async def test_three_missed_answers_make_it_unreachable_and_one_brings_it_back(
    clock: ManualClock,
) -> None:
    life = Life(clock)
    life.probe.healthy = True
    await life.until(ServerState.READY)
    life.probe.healthy = False
    status = await life.until(ServerState.UNREACHABLE)
    assert "answers 503" in status.detail
    life.probe.healthy = True
    assert (await life.until(ServerState.READY)).detail == ""
    await life.end(0)


async def test_a_gateway_without_health_is_reached_by_its_models(clock: ManualClock) -> None:
    life = Life(clock, kind=HandleKind.EXTERNAL, state=ServerState.UNREACHABLE)
    life.probe.lists_models = True
    await life.until(ServerState.READY)
    life.run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await life.run


async def test_a_page_that_is_no_metrics_page_harms_nothing(clock: ManualClock) -> None:
    life = Life(clock)
    life.probe.healthy = True
    life.probe.page = 'vllm:num_requests_running{broken="1" x\n'
    await life.until(ServerState.READY)
    life.probe.page = 'vllm:num_requests_running{model_name="m"} 5\n'
    async with asyncio.timeout(10):
        while not any(isinstance(event, ServerMetricsRead) for event in life.events):
            await asyncio.sleep(0.001)
    await life.end(0)
