"""The feed of a running agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from gpu_dash.agent.client import store_of
from gpu_dash.agent.store import Store
from gpu_dash.model.commands import Command, Control, Published, Reply, SnapshotSent
from gpu_dash.model.errors import AgentError
from gpu_dash.model.server import ServerState
from gpu_dash.ui.feed import Access, Changed, Link, LinkState, is_awaited

RETRY_S = 2.0
_OVER = (ServerState.NONE, ServerState.STOPPING, ServerState.STOPPED, ServerState.FAILED)


class Connection(Protocol):
    """What the feed needs of :class:`gpu_dash.agent.client.AgentConnection`."""

    def messages(self) -> AsyncIterator[SnapshotSent | Published | Control]:
        """Snapshot, events and changes of control, until the connection ends."""
        ...

    async def ask(self, command: Command) -> Reply:
        """Send a command and wait for its reply."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


Connect = Callable[[], Awaitable[Connection]]


class LiveFeed:
    """Folds an agent's events, and connects again when the agent goes away and comes back.

    Args:
        connect: opens a connection as a viewer; called inside the dashboard's event loop.
        read_only: the viewer was opened to look only.
        clock: the host's monotonic clock.
    """

    playback = None

    def __init__(
        self,
        connect: Connect,
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._connection: Connection | None = None
        self._store = Store()
        self._link = Link(LinkState.CONNECTING, since=clock())
        self._access = Access(yours=not read_only, read_only=read_only)

    @property
    def store(self) -> Store:
        return self._store

    @property
    def link(self) -> Link:
        return self._link

    @property
    def access(self) -> Access:
        return self._access

    def now(self) -> float:
        return self._clock()

    def advance(self) -> None:
        """Nothing: the clock runs by itself."""

    async def run(self, changed: Changed) -> None:
        """Follow the agent; when it goes away, look for it every two seconds."""
        while True:
            try:
                connection = await self._connect()
            except AgentError as error:
                self._lose(str(error))
            else:
                self._connection = connection
                try:
                    await self._follow(connection, changed)
                finally:
                    self._connection = None
                    await connection.close()
                self._lose(self._what_is_left())
            changed()
            await asyncio.sleep(RETRY_S)

    def _what_is_left(self) -> str:
        """What the end of the agent leaves, as far as it was told before."""
        if self._store.server.state in _OVER:
            return "the agent has ended, and with it all that it looked after"
        return "the agent went away, its server runs on; gpu-dash brings an agent back"

    async def send(self, command: Command) -> Reply:
        if self._connection is None:
            return Reply(id=0, ok=False, error="no agent to ask")
        try:
            return await self._connection.ask(command)
        except AgentError as error:
            return Reply(id=0, ok=False, error=str(error))

    async def _follow(self, connection: Connection, changed: Changed) -> None:
        async for message in connection.messages():
            if isinstance(message, Published):
                self._store.fold(message.event)
                if is_awaited(message.event):
                    changed()
            elif isinstance(message, SnapshotSent):
                self._store = store_of(message)
                self._link = Link(LinkState.LIVE, since=self._clock())
                changed()
            else:
                self._access = Access(
                    yours=message.yours and not self._access.read_only,
                    viewers=message.viewers,
                    read_only=self._access.read_only,
                )
                changed()

    def _lose(self, detail: str) -> None:
        if self._link.state is not LinkState.LOST:
            self._link = Link(LinkState.LOST, since=self._clock(), detail=detail)
