"""A clock that a test moves by hand."""

from __future__ import annotations


class ManualClock:
    """A :class:`gpu_dash.model.clock.Clock` that stands still until :meth:`advance` moves it.

    Both clocks start at round numbers far from zero, so that a test which mixes them up, or takes
    a stamp for a duration, shows it.
    """

    def __init__(self, monotonic: float = 1_000.0, utc: float = 1_750_000_000.0) -> None:
        self._monotonic = monotonic
        self._utc = utc

    def monotonic(self) -> float:
        """Seconds on the hand-moved monotonic clock."""
        return self._monotonic

    def utc(self) -> float:
        """Seconds since the epoch on the hand-moved wall clock."""
        return self._utc

    def advance(self, seconds: float) -> float:
        """Move both clocks on and return the monotonic one.

        Raises:
            ValueError: the seconds are negative; a monotonic clock never goes back.
        """
        if seconds < 0:
            raise ValueError(f"a monotonic clock never goes back, but was moved by {seconds} s")
        self._monotonic += seconds
        self._utc += seconds
        return self._monotonic

    def set_wall_clock(self, utc: float) -> None:
        """Set the wall clock alone, as an administrator or NTP does; the monotonic one stays."""
        self._utc = utc
