"""Where the store comes from: an agent, a recording."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest

from gpu_dash.agent.store import Store
from gpu_dash.model.commands import Command, Control, Published, Reply, SnapshotSent, StopLoad
from gpu_dash.model.errors import AgentError
from gpu_dash.model.events import Event, LogLines, Notice
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.model.server import ServerState
from gpu_dash.ui.feed import LinkState
from gpu_dash.ui.live_feed import LiveFeed
from gpu_dash.ui.replay_feed import ReplayFeed
from tests.fakes.clock import ManualClock
from tests.ui.scenes import server

Message = SnapshotSent | Published | Control


class FakeConnection:
    """Plays messages, then waits or ends."""

    def __init__(self, *messages: Message, ends: bool) -> None:
        self._messages = messages
        self._ends = ends
        self.closed = False
        self.asked: list[Command] = []
        self.read = asyncio.Event()

    async def messages(self) -> AsyncIterator[Message]:
        for message in self._messages:
            yield message
        self.read.set()
        if not self._ends:
            await asyncio.Event().wait()

    async def ask(self, command: Command) -> Reply:
        self.asked.append(command)
        return Reply(id=1, ok=True)

    async def close(self) -> None:
        self.closed = True


def snapshot(store: Store) -> SnapshotSent:
    return SnapshotSent(seq=1, snapshot=msgspec.Raw(msgspec.msgpack.encode(store)))


async def test_a_live_feed_folds_events_into_the_snapshot(clock: ManualClock) -> None:
    store = Store()
    store.fold(server(ServerState.STARTING, 1.0))
    connection = FakeConnection(
        snapshot(store),
        Published(seq=2, event=server(ServerState.READY, 2.0)),
        Control(yours=False, viewers=2),
        ends=False,
    )

    async def connect() -> FakeConnection:
        return connection

    feed = LiveFeed(connect, clock=clock.monotonic)
    changes = 0

    def changed() -> None:
        nonlocal changes
        changes += 1

    running = asyncio.create_task(feed.run(changed))
    await connection.read.wait()

    assert feed.store.server.state is ServerState.READY
    assert feed.link.state is LinkState.LIVE
    assert not feed.access.yours
    assert feed.access.viewers == 2
    assert changes == 3
    assert (await feed.send(StopLoad())).ok
    assert connection.asked == [StopLoad()]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert connection.closed


async def test_an_agent_that_goes_away_is_said_and_looked_for_again(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_dash.ui.live_feed.RETRY_S", 0.0)
    last = FakeConnection(snapshot(Store()), ends=False)
    lost_states: list[tuple[LinkState, bool]] = []

    class Agent:
        attempts = 0

        async def connect(self) -> FakeConnection:
            self.attempts += 1
            if self.attempts == 1:
                return FakeConnection(snapshot(Store()), ends=True)
            lost_states.append((feed.link.state, (await feed.send(StopLoad())).ok))
            if self.attempts == 2:
                raise AgentError("no agent answers")
            return last

    agent = Agent()
    feed = LiveFeed(agent.connect, clock=clock.monotonic)
    running = asyncio.create_task(feed.run(lambda: None))
    async with asyncio.timeout(5):
        await last.read.wait()

    assert lost_states == [(LinkState.LOST, False)] * 2
    assert feed.link.state is LinkState.LIVE
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ServerState.READY, "its server runs on"),
        (ServerState.STARTING, "its server runs on"),
        (ServerState.STOPPED, "the agent has ended"),
        (ServerState.FAILED, "the agent has ended"),
        (ServerState.NONE, "the agent has ended"),
    ],
)
async def test_what_an_agent_that_goes_away_leaves_is_said_as_it_is(
    clock: ManualClock, state: ServerState, words: str
) -> None:
    store = Store()
    store.fold(server(state, 1.0))

    async def connect() -> FakeConnection:
        return FakeConnection(snapshot(store), ends=True)

    feed = LiveFeed(connect, clock=clock.monotonic)
    lost = asyncio.Event()
    running = asyncio.create_task(
        feed.run(lambda: lost.set() if feed.link.state is LinkState.LOST else None)
    )
    async with asyncio.timeout(5):
        await lost.wait()
    assert words in feed.link.detail
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_read_only_viewer_never_has_the_controls(clock: ManualClock) -> None:
    connection = FakeConnection(Control(yours=True, viewers=1), ends=False)

    async def connect() -> FakeConnection:
        return connection

    feed = LiveFeed(connect, read_only=True, clock=clock.monotonic)
    running = asyncio.create_task(feed.run(lambda: None))
    await connection.read.wait()

    assert not feed.access.yours
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class Recording:
    """One log line and one notice a second, for ten seconds."""

    duration_s = 10.0

    def __init__(self) -> None:
        self.events: list[Event] = []
        for second in range(11):
            at = float(second)
            self.events.append(LogLines(at=at, lines=(LogLine(second + 1, f"at {second}"),)))
            self.events.append(Notice(at=at, severity=Severity.INFO, text=f"at {second}"))

    def events_until(self, position_s: float) -> Sequence[Event]:
        return [event for event in self.events if event.at <= position_s]

    def events_between(self, start_s: float, end_s: float) -> Sequence[Event]:
        return [event for event in self.events if start_s < event.at <= end_s]


def is_playing(feed: ReplayFeed) -> bool:
    return feed.state.playing


def newest(feed: ReplayFeed) -> str:
    return feed.store.notices[-1].text


def test_a_replay_plays_in_its_own_time(clock: ManualClock) -> None:
    feed = ReplayFeed(Recording(), clock=clock.monotonic)
    assert newest(feed) == "at 0"

    clock.advance(3.5)
    feed.advance()

    assert feed.now() == 3.5
    assert newest(feed) == "at 3"
    assert feed.store.log_lines_total == 4


def test_paused_time_does_not_count(clock: ManualClock) -> None:
    feed = ReplayFeed(Recording(), clock=clock.monotonic)
    clock.advance(2.0)
    feed.toggle()
    clock.advance(50.0)
    feed.advance()
    assert feed.now() == 2.0

    feed.toggle()
    clock.advance(1.0)
    feed.advance()

    assert feed.now() == 3.0


def test_seek_back_and_forth_gives_the_state_of_that_moment(clock: ManualClock) -> None:
    feed = ReplayFeed(Recording(), playing=False, clock=clock.monotonic)

    for position, text in ((7.2, "at 7"), (2.0, "at 2"), (99.0, "at 10"), (-5.0, "at 0")):
        feed.seek(position)
        assert newest(feed) == text
        assert feed.store.log_lines_total == int(text[3:]) + 1


def test_speed_goes_by_steps_and_stops_at_its_ends(clock: ManualClock) -> None:
    feed = ReplayFeed(Recording(), clock=clock.monotonic)

    speeds = []
    for step in (1, 1, 1, 1, -1):
        feed.change_speed(step)
        speeds.append(feed.state.speed)
    assert speeds == [2.0, 4.0, 8.0, 8.0, 4.0]

    clock.advance(2.0)
    feed.advance()
    assert feed.now() == 8.0


def test_it_stops_at_the_end_and_plays_again_from_the_start(clock: ManualClock) -> None:
    feed = ReplayFeed(Recording(), clock=clock.monotonic)
    clock.advance(60.0)
    feed.advance()
    assert feed.now() == 10.0
    assert not is_playing(feed)

    feed.toggle()

    assert is_playing(feed)
    assert feed.now() == 0.0
    assert newest(feed) == "at 0"


async def test_a_replay_takes_no_command(clock: ManualClock) -> None:
    feed = ReplayFeed(Recording(), clock=clock.monotonic)

    assert not (await feed.send(StopLoad())).ok
