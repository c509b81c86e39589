"""The one road: order, listeners, viewers that do not read, and who has the controls."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gpu_dash.agent import hub as hub_module
from gpu_dash.agent.client import store_of
from gpu_dash.agent.hub import BURST_LINES, Hub, Viewer, thin_out
from gpu_dash.model.commands import Control, FromAgent, Published, SnapshotSent
from gpu_dash.model.events import LoadTick, LogLines, Notice
from gpu_dash.model.frames import read_frames
from gpu_dash.model.log import LogLine, Severity


def tick(number: int) -> LoadTick:
    return LoadTick(at=float(number), in_flight=number, interval_s=0.25, output_tokens=0)


@asynccontextmanager
async def connected(
    hub: Hub, *, read_only: bool = False
) -> AsyncIterator[tuple[Viewer, asyncio.StreamReader]]:
    """A viewer on a socket pair of its own, not yet added to the hub."""
    ours, theirs = socket.socketpair()
    reader, far_writer = await asyncio.open_connection(sock=theirs)
    _, writer = await asyncio.open_connection(sock=ours)
    viewer = Viewer(hub, writer, read_only=read_only)
    sending = asyncio.create_task(viewer.send())
    try:
        yield viewer, reader
    finally:
        sending.cancel()
        for one in (writer, far_writer):
            one.close()
        await asyncio.gather(sending, return_exceptions=True)


async def test_a_viewer_gets_the_snapshot_and_then_every_event_once() -> None:
    hub = Hub()
    hub.publish(tick(1))
    async with connected(hub) as (viewer, reader):
        hub.add_viewer(viewer)
        messages = read_frames(reader, FromAgent)
        snapshot = await anext(messages)
        assert isinstance(snapshot, SnapshotSent)
        assert snapshot.seq == 1
        assert store_of(snapshot) == hub.store
        hub.publish(tick(2))
        hub.publish(tick(3))
        seen = []
        async for message in messages:
            if isinstance(message, Published):
                seen.append(message.seq)
                if message.seq == 3:
                    break
        assert seen == [2, 3]


async def test_a_viewer_that_does_not_read_gets_a_snapshot_instead_of_what_it_missed() -> None:
    hub = Hub()
    async with connected(hub) as (viewer, reader):
        hub.add_viewer(viewer)
        messages = read_frames(reader, FromAgent)
        assert isinstance(await anext(messages), SnapshotSent)
        big = Notice(at=1.0, severity=Severity.INFO, text="x" * 100_000)
        for _ in range(3 * hub_module.VIEWER_QUEUE_BYTES // 100_000):
            hub.publish(big)
        hub.publish(tick(9))
        last = None
        async with asyncio.timeout(20):
            async for message in messages:
                if isinstance(message, SnapshotSent):
                    last = message
                    break
        assert last is not None
        store = store_of(last)
        assert store.tick is not None
        assert store.tick.in_flight == 9


async def test_the_first_viewer_has_the_controls_and_they_pass_on() -> None:
    hub = Hub()
    async with connected(hub) as (first, reader), connected(hub) as (second, _):
        hub.add_viewer(first)
        hub.add_viewer(second)
        assert hub.controller is first
        hub.give_control(second)
        assert hub.controller is second
        messages = read_frames(reader, FromAgent)
        async with asyncio.timeout(10):
            async for message in messages:
                if isinstance(message, Control) and not message.yours:
                    break
        hub.remove_viewer(second)
        assert hub.controller is first
        hub.remove_viewer(first)
        assert hub.controller is None


async def test_a_read_only_viewer_never_gets_the_controls() -> None:
    hub = Hub()
    async with connected(hub, read_only=True) as (viewer, _):
        hub.add_viewer(viewer)
        assert hub.controller is None
        hub.remove_viewer(viewer)


def test_of_a_burst_the_marked_and_the_newest_lines_are_kept() -> None:
    lines = tuple(
        LogLine(number, "text", "nccl_timeout" if number == 3 else "") for number in range(20_000)
    )
    thinned = thin_out(LogLines(at=1.0, lines=lines))
    assert len(thinned.lines) <= BURST_LINES
    assert thinned.lines[0].number == 3
    assert thinned.lines[-1].number == 19_999
    assert thinned.dropped + len(thinned.lines) == 20_000


def test_a_listener_hears_until_it_ends() -> None:
    hub = Hub()
    heard: list[float] = []
    end = hub.listen(lambda event: heard.append(event.at))
    hub.publish(tick(1))
    end()
    hub.publish(tick(2))
    assert heard == [1.0]
