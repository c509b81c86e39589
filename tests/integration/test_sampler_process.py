"""The agent's hold on its sampler: silent, crashed, hung, replaced, stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import psutil
import pytest

from gpu_dash.gpu import process
from gpu_dash.gpu.process import SamplerProcess
from gpu_dash.gpu.protocol import GpuEvent
from gpu_dash.model.events import GpuSamples, GpuSourceChanged, ThrottleBegan, ThrottleEnded
from gpu_dash.model.gpu import GpuSourceState
from tests.fakes.nvml.scene import NvmlScene

pytest_plugins = ["tests.fakes.nvml.fixture"]

E = TypeVar("E")

LIVE = GpuSourceState.LIVE
STALE = GpuSourceState.STALE
FAILED = GpuSourceState.FAILED
NONE = GpuSourceState.NONE


class Agent:
    """What the agent hears from its sampler."""

    def __init__(self, source: str) -> None:
        self.events: list[GpuEvent] = []
        self.sampler = SamplerProcess(source, self._take)
        self._news = asyncio.Event()

    async def wait(
        self, kind: type[E], fits: Callable[[E], bool] = lambda event: True, after: int = 0
    ) -> E:
        """The first event of a kind that fits, among those from number ``after`` on."""
        try:
            async with asyncio.timeout(30):
                while True:
                    for event in self.events[after:]:
                        if isinstance(event, kind) and fits(event):
                            return event
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            others = [event for event in self.events if not isinstance(event, GpuSamples)]
            raise AssertionError(f"no such {kind.__name__}; but {others}") from None

    async def state(self, state: GpuSourceState, after: int = 0) -> GpuSourceChanged:
        return await self.wait(GpuSourceChanged, lambda event: event.state is state, after)

    @property
    def pid(self) -> int:
        assert self.sampler.pid is not None
        return self.sampler.pid

    def states(self) -> list[GpuSourceState]:
        return [event.state for event in self.events if isinstance(event, GpuSourceChanged)]

    def _take(self, event: GpuEvent) -> None:
        self.events.append(event)
        self._news.set()


@asynccontextmanager
async def sampling(source: str) -> AsyncIterator[Agent]:
    agent = Agent(source)
    await agent.sampler.start()
    try:
        yield agent
    finally:
        await agent.sampler.stop()


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same order of patience in tenths of seconds."""
    monkeypatch.setattr(process, "STALE_S", 0.5)
    monkeypatch.setattr(process, "HUNG_S", 1.5)
    monkeypatch.setattr(process, "RETRY_S", (0.05, 0.1))


@pytest.fixture
def scene(nvml_scene: NvmlScene, monkeypatch: pytest.MonkeyPatch) -> NvmlScene:
    """The scripted driver, for children of this process."""
    for name, value in nvml_scene.variables().items():
        monkeypatch.setenv(name, value)
    nvml_scene.write("gpus 2")
    return nvml_scene


async def test_a_source_starts_lives_and_stops_without_a_trace(scene: NvmlScene) -> None:
    async with sampling("nvml") as agent:
        live = await agent.state(LIVE)
        assert [info.name for info in live.gpus] == ["NVIDIA H200"] * 2
        await agent.wait(GpuSamples)
        child = psutil.Process(agent.pid)
    assert agent.states() == [GpuSourceState.STARTING, LIVE]
    assert not child.is_running()
    assert agent.sampler.pid is None


async def test_a_slow_call_is_stale_and_then_live_again(scene: NvmlScene) -> None:
    async with sampling("nvml") as agent:
        await agent.wait(GpuSamples)
        pid = agent.pid
        scene.write("gpus 2\n*.delay_us.nvmlDeviceGetPowerUsage 500000")
        stale = await agent.state(STALE)
        assert "a driver call hangs" in stale.detail
        scene.write("gpus 2")
        again = await agent.state(LIVE, after=agent.events.index(stale))
        assert len(again.gpus) == 2
        assert agent.pid == pid


async def test_a_call_that_hangs_gets_a_new_sampler_and_live_again(scene: NvmlScene) -> None:
    async with sampling("nvml") as agent:
        await agent.wait(GpuSamples)
        pid = agent.pid
        scene.write("gpus 2\n0.delay_us.nvmlDeviceGetTemperature 60000000")
        stale = await agent.state(STALE)
        replaced = await agent.wait(
            GpuSourceChanged, lambda event: "it is replaced" in event.detail
        )
        assert "silent for 2 s" in replaced.detail
        scene.write("gpus 2")
        await agent.state(LIVE, after=agent.events.index(stale))
        await agent.wait(GpuSamples, after=len(agent.events))
        assert agent.pid != pid
        assert not psutil.pid_exists(pid)


@pytest.mark.parametrize("end", [signal.SIGSEGV, signal.SIGKILL])
async def test_a_sampler_that_is_killed_is_replaced(scene: NvmlScene, end: signal.Signals) -> None:
    scene.write("gpus 2\n1.reasons 0x40\n1.temp 93")
    async with sampling("nvml") as agent:
        await agent.wait(ThrottleBegan)
        pid = agent.pid
        os.kill(pid, end)
        lost = await agent.state(STALE)
        assert f"signal {end.value} ({end.name})" in lost.detail
        place = agent.events.index(lost)
        # its throttle ends with it, and the next sampler sees it anew
        (ended,) = (event for event in agent.events[:place] if isinstance(event, ThrottleEnded))
        assert (ended.gpu, ended.peak_temperature_celsius) == (1, 93)
        await agent.state(LIVE, after=place)
        await agent.wait(ThrottleBegan, after=place)
        assert agent.pid != pid


@pytest.mark.parametrize("crash", [signal.SIGSEGV, signal.SIGABRT])
async def test_a_crash_inside_a_driver_call_is_survived(
    scene: NvmlScene, crash: signal.Signals
) -> None:
    async with sampling("nvml") as agent:
        await agent.wait(GpuSamples)
        scene.write(f"gpus 2\n0.crash.nvmlDeviceGetClockInfo {crash.value}")
        lost = await agent.state(STALE)
        assert f"signal {crash.value} ({crash.name}): " in lost.detail
        scene.write("gpus 2")
        await agent.state(LIVE, after=agent.events.index(lost))


async def test_a_driver_that_is_reloaded_is_found_again(scene: NvmlScene) -> None:
    async with sampling("auto") as agent:
        await agent.wait(GpuSamples)
        scene.write("gpus 2\n*.err.* UNINITIALIZED\n*.err.nvmlInit* DRIVER_NOT_LOADED")
        failed = await agent.state(FAILED)
        assert "no longer answers" in failed.detail
        absent = await agent.state(NONE)
        assert "the kernel module is not loaded" in absent.detail
        scene.write("gpus 2")
        await agent.state(LIVE, after=agent.events.index(absent))
        await agent.wait(GpuSamples, after=agent.events.index(absent))


async def test_no_driver_is_said_once_and_left_at_that(scene: NvmlScene) -> None:
    scene.write("*.err.nvmlInit* DRIVER_NOT_LOADED")
    async with sampling("auto") as agent:
        absent = await agent.state(NONE)
        assert absent.source == "none"
        assert "Driver Not Loaded" in absent.detail
        async with asyncio.timeout(30):
            while agent.sampler.pid is not None:
                await asyncio.sleep(0.01)
    assert agent.states() == [GpuSourceState.STARTING, NONE]


async def test_a_source_that_never_works_is_given_up_with_its_reason(scene: NvmlScene) -> None:
    scene.write("*.err.nvmlInit* LIB_RM_VERSION_MISMATCH")
    async with sampling("nvml") as agent:
        given_up = await agent.wait(
            GpuSourceChanged, lambda event: "given up after 5 tries" in event.detail
        )
        assert "version mismatch" in given_up.detail
        assert agent.states() == [GpuSourceState.STARTING, FAILED, FAILED]


async def test_a_driver_that_opens_slowly_is_said_to(
    scene: NvmlScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "SLOW_OPEN_S", 0.2)
    scene.write("gpus 1\n*.delay_us.nvmlInit* 700000")
    async with sampling("nvml") as agent:
        slow = await agent.wait(GpuSourceChanged, lambda event: event.detail != "")
        assert slow.state is GpuSourceState.STARTING
        assert "persistence mode" in slow.detail
        live = await agent.state(LIVE)
        assert live.detail == ""


async def test_amd_is_refused_in_words(scene: NvmlScene) -> None:
    async with sampling("amd") as agent:
        refused = await agent.state(FAILED)
        assert "no AMD card with the amdgpu driver" in refused.detail
        assert refused.source == "amd"


async def test_simulated_cards_idle_until_their_server_is_there() -> None:
    async with sampling("sim") as agent:
        live = await agent.state(LIVE)
        assert live.detail == "idle cards; no server runs"
        agent.sampler.set_simulated_url("http://127.0.0.1:9")
        told = await agent.wait(
            GpuSourceChanged, lambda event: "no server answers at" in event.detail
        )
        agent.sampler.set_simulated_url(None)
        await agent.wait(
            GpuSourceChanged,
            lambda event: event.detail == live.detail,
            after=agent.events.index(told),
        )


async def test_a_server_that_is_named_while_the_sampler_starts_is_not_missed() -> None:
    agent = Agent("sim")
    await agent.sampler.start()
    try:
        await asyncio.sleep(0)  # the child is being started
        agent.sampler.set_simulated_url("http://127.0.0.1:9")
        await agent.wait(GpuSourceChanged, lambda event: "no server answers" in event.detail)
    finally:
        await agent.sampler.stop()


async def test_a_sampler_that_cannot_be_killed_does_not_hold_the_stop(
    scene: NvmlScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent("nvml")
    await agent.sampler.start()
    await agent.wait(GpuSamples)
    child = psutil.Process(agent.pid)
    # a stopped process whose SIGKILL is withheld is as deaf as one that sleeps in the driver
    child.suspend()
    async with asyncio.timeout(5):
        while child.status() != psutil.STATUS_STOPPED:
            await asyncio.sleep(0.01)
    with monkeypatch.context() as patch:
        patch.setattr(process, "END_S", 0.1)
        patch.setattr(asyncio.subprocess.Process, "kill", lambda self: None)
        async with asyncio.timeout(5):
            await agent.sampler.stop()
        assert child.is_running()
    child.kill()
    async with asyncio.timeout(5):
        while child.is_running():
            await asyncio.sleep(0.01)
