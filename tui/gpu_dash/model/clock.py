"""One clock: every moment in gpu-dash is a reading of the host's monotonic clock.

``time.monotonic()`` is ``CLOCK_MONOTONIC`` on Linux: the same for all processes of a host and
never set back, so a stamp taken in the sampler, in a load worker and in the agent can be
compared. A session keeps one :class:`ClockAnchor`, which turns such a stamp into seconds since
the session's start and into UTC.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

import msgspec


class Clock(Protocol):
    """Where the time comes from; tests give a clock that they move by hand."""

    def monotonic(self) -> float:
        """Seconds on the host's monotonic clock."""
        ...

    def utc(self) -> float:
        """Seconds since the epoch."""
        ...


class SystemClock:
    """The host's own clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def utc(self) -> float:
        return time.time()


class ClockAnchor(msgspec.Struct, frozen=True):
    """The moment at which a session began, on both clocks."""

    monotonic: float
    """Seconds on the host's monotonic clock."""
    utc: float
    """Seconds since the epoch at that same moment."""

    @classmethod
    def now(cls, clock: Clock | None = None) -> ClockAnchor:
        """Read both clocks at this moment."""
        clock = clock or SystemClock()
        return cls(monotonic=clock.monotonic(), utc=clock.utc())

    def time_s(self, monotonic: float) -> float:
        """Seconds from the session's start to a monotonic stamp."""
        return monotonic - self.monotonic

    def time_utc(self, monotonic: float) -> str:
        """A monotonic stamp as ISO 8601 in UTC with milliseconds, ending in ``Z``."""
        moment = datetime.fromtimestamp(self.utc + self.time_s(monotonic), UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
