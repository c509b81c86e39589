"""When each card's dear values are due, so that no sweep carries those of all cards. Pure."""

from __future__ import annotations

from collections.abc import Iterable

SLOW_INTERVAL_S = 1.0


class SlowTurns:
    """One turn per card and interval: all at once at first, then spread over the interval.

    Args:
        gpus: the cards.
        interval_s: the time between two turns of a card.
    """

    def __init__(self, gpus: Iterable[int], interval_s: float = SLOW_INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._place = {gpu: place for place, gpu in enumerate(gpus)}
        self._due: dict[int, float] = {}

    def is_due(self, gpu: int, at: float) -> bool:
        """Whether it is the card's turn; if so, the turn is taken."""
        due = self._due.get(gpu)
        if due is None:
            share = 1 - self._place[gpu] / len(self._place)
            self._due[gpu] = at + self._interval_s * share
            return True
        if at < due:
            return False
        self._due[gpu] = max(due + self._interval_s, at)
        return True
