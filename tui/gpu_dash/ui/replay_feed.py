"""The feed of a recorded session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from gpu_dash.agent.store import Store
from gpu_dash.model.commands import Command, Reply
from gpu_dash.model.events import Event
from gpu_dash.ui.feed import Access, Changed, Link, LinkState, PlayState

SPEEDS = (1.0, 2.0, 4.0, 8.0)


class Recording(Protocol):
    """Events of one session in order, their moments counted from its start."""

    @property
    def duration_s(self) -> float:
        """From the first to the last event."""
        ...

    def events_until(self, position_s: float) -> Iterable[Event]:
        """Everything that had happened at a moment, that moment included."""
        ...

    def events_between(self, start_s: float, end_s: float) -> Iterable[Event]:
        """What happened after ``start_s``, up to and including ``end_s``."""
        ...


class ReplayFeed:
    """Plays a recording; the play head is the clock of everything that is shown.

    Args:
        recording: what to play.
        playing: begin to play at once.
        clock: what moves the play head.
    """

    link = Link(LinkState.LIVE)
    access = Access(yours=False)

    def __init__(
        self,
        recording: Recording,
        *,
        playing: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recording = recording
        self._clock = clock
        self._playing = playing
        self._speed = SPEEDS[0]
        self._position_s = 0.0
        self._moved_at = clock()
        self._store = self._store_at(0.0)

    @property
    def store(self) -> Store:
        return self._store

    @property
    def playback(self) -> ReplayFeed:
        return self

    @property
    def state(self) -> PlayState:
        return PlayState(
            position_s=self._position_s,
            duration_s=self._recording.duration_s,
            playing=self._playing,
            speed=self._speed,
        )

    def now(self) -> float:
        return self._position_s

    def advance(self) -> None:
        """Move the play head by the time that went by, and fold what it passed."""
        now = self._clock()
        elapsed, self._moved_at = now - self._moved_at, now
        if not self._playing:
            return
        start = self._position_s
        self._position_s = min(self._recording.duration_s, start + elapsed * self._speed)
        for event in self._recording.events_between(start, self._position_s):
            self._store.fold(event)
        if self._position_s >= self._recording.duration_s:
            self._playing = False

    def toggle(self) -> None:
        self.advance()
        self._playing = not self._playing
        if self._playing and self._position_s >= self._recording.duration_s:
            self.seek(0.0)

    def seek(self, position_s: float) -> None:
        self._position_s = min(self._recording.duration_s, max(0.0, position_s))
        self._moved_at = self._clock()
        self._store = self._store_at(self._position_s)

    def change_speed(self, steps: int) -> None:
        self.advance()
        index = SPEEDS.index(self._speed) + steps
        self._speed = SPEEDS[min(len(SPEEDS) - 1, max(0, index))]

    async def run(self, changed: Changed) -> None:
        """Nothing comes by itself."""
        await asyncio.Event().wait()

    async def send(self, command: Command) -> Reply:
        return Reply(id=0, ok=False, error="this is a replay: there is nothing to command")

    def _store_at(self, position_s: float) -> Store:
        store = Store()
        for event in self._recording.events_until(position_s):
            store.fold(event)
        return store
