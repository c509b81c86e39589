"""A start that falls silent: how long, and what it waits for."""

from __future__ import annotations

import asyncio

import pytest

from gpu_dash.model.events import Notice
from gpu_dash.model.server import ServerState
from gpu_dash.server import supervisor as module
from tests.fakes.clock import ManualClock
from tests.unit.server.test_supervisor import Life


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STARTING_POLL_S", 0.001)
    monkeypatch.setattr(module, "READY_POLL_S", 0.001)


def notices(life: Life) -> list[str]:
    return [event.text for event in life.events if isinstance(event, Notice)]


async def polls(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0.002)


@pytest.mark.parametrize(
    ("line", "harmless_s", "silent_s", "says"),
    [
        ("Loading safetensors checkpoint shards: 50%", 55, 61, "loading weights: no progress"),
        ("INFO [pynccl.py:1] vLLM is using nccl==2.28.9", 25, 31, "NCCL_P2P_DISABLE=1"),
        ("INFO [monitor.py:1] Starting torch.compile", 200, 301, "minutes are normal"),
    ],
)
async def test_each_stage_may_be_silent_for_its_own_time(
    clock: ManualClock, line: str, harmless_s: float, silent_s: float, says: str
) -> None:
    life = Life(clock, ready_timeout_s=10_000)
    life.supervisor.take_line(line)
    clock.advance(harmless_s)
    await polls()
    assert notices(life) == []

    clock.advance(silent_s - harmless_s)
    await polls()

    (text,) = notices(life)
    assert says in text
    assert f"no progress for {silent_s:.0f} s" in text
    assert life.supervisor.status.quiet_since == clock.monotonic() - silent_s
    life.supervisor.take_line("another line")
    assert not life.supervisor.status.quiet_since
    await life.end(0)


async def test_a_server_that_serves_may_be_silent(clock: ManualClock) -> None:
    life = Life(clock)
    life.probe.healthy = True
    await life.until(ServerState.READY)
    clock.advance(10_000)
    await polls()

    assert notices(life) == []
    await life.end(0)
