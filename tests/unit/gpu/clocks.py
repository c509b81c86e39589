"""A clock that the test moves by hand."""

from __future__ import annotations


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, at: float = 100.0) -> None:
        self.at = at

    def monotonic(self) -> float:
        return self.at

    def utc(self) -> float:
        return self.at
