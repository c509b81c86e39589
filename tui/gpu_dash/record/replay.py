"""A recorded session to be played: every moment of it can be asked for.

A player that goes forward folds :meth:`Replay.events_between`; one that goes back folds
:meth:`Replay.events_until` into an empty store.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpu_dash.model.events import Event
from gpu_dash.record.reader import SessionReader


class Replay:
    """Events of one session, their times counted from its start.

    Args:
        events: in order, as :meth:`SessionReader.events` gives them.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._events: Sequence[Event] = tuple(events)
        # Cards were read before the session began; what it found belongs to its first moment.
        self._times = [max(0.0, event.at) for event in self._events]

    @classmethod
    def load(cls, folder: Path) -> Replay:
        """Read a session folder.

        Raises:
            RecordError: it holds no session or cannot be read.
        """
        return cls(SessionReader(folder).events())

    @property
    def duration_s(self) -> float:
        """From the session's start to its last event."""
        return self._times[-1] if self._times else 0.0

    def events_until(self, position_s: float) -> Sequence[Event]:
        """Everything that had happened at a moment, that moment included."""
        return self._events[: bisect_right(self._times, position_s)]

    def events_between(self, start_s: float, end_s: float) -> Sequence[Event]:
        """What happened after ``start_s``, up to and including ``end_s``."""
        first = bisect_right(self._times, start_s)
        return self._events[first : bisect_right(self._times, end_s, lo=first)]
