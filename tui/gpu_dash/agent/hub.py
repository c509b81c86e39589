"""The hub: the one road on which every event gets its place.

``publish`` numbers an event, folds it into the store and hands it to the listeners (recorder,
step accounting, the command line of ``run``) and to the viewers. It never waits: a viewer that
does not read falls behind, loses its queue and gets a fresh snapshot when it reads again.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable

import msgspec

from gpu_dash.agent.store import Store
from gpu_dash.model.commands import Control, Published, Reply, SnapshotSent
from gpu_dash.model.events import Event, LogLines
from gpu_dash.model.frames import encode_frame

VIEWER_QUEUE_BYTES = 8 * 1024 * 1024
"""A viewer this far behind gets a snapshot instead of what it missed."""
BURST_LINES = 1000
"""The most log lines of one event; of more, the marked ones and the newest are kept."""


class Hub:
    """Numbers, folds and distributes events."""

    def __init__(self) -> None:
        self.store = Store()
        self.seq = 0
        self._listeners: list[Callable[[Event], None]] = []
        self._viewers: list[Viewer] = []
        self._waiting: collections.deque[Event] = collections.deque()
        self._is_publishing = False

    def publish(self, event: Event) -> None:
        """Give an event its place in the one order and hand it on.

        What a listener publishes while it hears of an event comes after that event, for all.
        """
        self._waiting.append(event)
        if self._is_publishing:
            return
        self._is_publishing = True
        try:
            while self._waiting:
                self._publish(self._waiting.popleft())
        finally:
            self._is_publishing = False

    def _publish(self, event: Event) -> None:
        if isinstance(event, LogLines) and len(event.lines) > BURST_LINES:
            event = thin_out(event)
        self.seq += 1
        self.store.fold(event)
        for listener in tuple(self._listeners):
            listener(event)
        if self._viewers:
            frame = encode_frame(Published(seq=self.seq, event=event))
            for viewer in self._viewers:
                viewer.offer(frame)

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``listener`` with every event from now on; returns the way to end it."""
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    def snapshot_frame(self) -> bytes:
        """The store as a frame."""
        body = msgspec.Raw(msgspec.msgpack.encode(self.store))
        return encode_frame(SnapshotSent(seq=self.seq, snapshot=body))

    # -- viewers -------------------------------------------------------------------------------

    def add_viewer(self, viewer: Viewer) -> None:
        """Send a viewer a snapshot and all that follows; the first one gets the controls."""
        self._viewers.append(viewer)
        viewer.fall_behind()
        if not viewer.read_only and self.controller is None:
            viewer.has_control = True
        self._tell_control()

    def remove_viewer(self, viewer: Viewer) -> None:
        """Forget a viewer; if it had the controls, the longest waiting one gets them."""
        self._viewers.remove(viewer)
        if viewer.has_control:
            for other in self._viewers:
                if not other.read_only:
                    other.has_control = True
                    break
        self._tell_control()

    def give_control(self, viewer: Viewer) -> None:
        """Make one viewer the one whose keys count."""
        for other in self._viewers:
            other.has_control = other is viewer
        self._tell_control()

    @property
    def controller(self) -> Viewer | None:
        """The viewer that holds the controls."""
        return next((viewer for viewer in self._viewers if viewer.has_control), None)

    @property
    def viewers(self) -> int:
        """How many viewers watch."""
        return len(self._viewers)

    def _tell_control(self) -> None:
        for viewer in self._viewers:
            message = Control(yours=viewer.has_control, viewers=len(self._viewers))
            viewer.offer(encode_frame(message))


class Viewer:
    """One connected screen: a bounded queue and the task that empties it into the socket."""

    def __init__(self, hub: Hub, writer: asyncio.StreamWriter, *, read_only: bool) -> None:
        self.read_only = read_only
        self.has_control = False
        self._hub = hub
        self._writer = writer
        self._frames: collections.deque[bytes] = collections.deque()
        self._queued_bytes = 0
        self._behind = False
        self._wake = asyncio.Event()

    def offer(self, frame: bytes) -> None:
        """Queue a frame; beyond the bound the queue is dropped in favour of a snapshot."""
        if self._behind:
            return
        self._frames.append(frame)
        self._queued_bytes += len(frame)
        if self._queued_bytes > VIEWER_QUEUE_BYTES:
            self.fall_behind()
        self._wake.set()

    def reply(self, reply: Reply) -> None:
        """Queue a reply; unlike events, replies are never dropped."""
        self._writer.write(encode_frame(reply))

    def fall_behind(self) -> None:
        """Forget what is queued: a snapshot will say it all."""
        self._frames.clear()
        self._queued_bytes = 0
        self._behind = True
        self._wake.set()

    async def send(self) -> None:
        """Empty the queue into the socket until the connection ends."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._behind:
                self._behind = False
                message = Control(yours=self.has_control, viewers=self._hub.viewers)
                data = self._hub.snapshot_frame() + encode_frame(message)
            else:
                data = b"".join(self._frames)
            self._frames.clear()
            self._queued_bytes = 0
            self._writer.write(data)
            await self._writer.drain()


def thin_out(event: LogLines) -> LogLines:
    """Of a burst, keep the marked lines and the newest ones; the file has them all."""
    first_kept = len(event.lines) - BURST_LINES // 2
    marked = [line for line in event.lines[:first_kept] if line.kind][: BURST_LINES // 2]
    lines = (*marked, *event.lines[first_kept:])
    return LogLines(at=event.at, lines=lines, dropped=len(event.lines) - len(lines))
