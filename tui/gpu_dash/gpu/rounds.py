"""Reading all cards of a source in turn, each whole, until none answers any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gpu_dash.gpu.backend import Reading, Sweep
from gpu_dash.gpu.silence import Silence
from gpu_dash.gpu.slow_turns import SlowTurns
from gpu_dash.model.errors import GpuSourceError
from gpu_dash.model.events import GpuReadFailed


class Polled(Protocol):
    """A card that is read by one call."""

    @property
    def gpu(self) -> int:
        """Its index."""

    @property
    def failure(self) -> str:
        """What does not work and why."""

    def poll(self, at: float, *, slow: bool) -> tuple[Reading | None, list[GpuReadFailed]]:
        """As :meth:`gpu_dash.gpu.card.PolledCard.poll`."""


class Rounds:
    """Sweeps over some cards.

    Args:
        cards: in the order of their indexes.
        at: moment at which the source was opened.
        hint: what to ask when none answers any more; put behind the failure of the first.
    """

    def __init__(self, cards: Sequence[Polled] = (), at: float = 0.0, hint: str = "") -> None:
        self._cards = cards
        self._turns = SlowTurns(card.gpu for card in cards)
        self._silence = Silence(at)
        self._hint = hint

    def sweep(self, at: float) -> Sweep:
        """Read every card.

        Raises:
            GpuSourceError: no card has answered for a while.
        """
        readings, failures = [], []
        for card in self._cards:
            reading, new = card.poll(at, slow=self._turns.is_due(card.gpu, at))
            failures += new
            if reading is not None:
                readings.append(reading)
        if self._silence.is_too_long(at, answered=bool(readings)):
            failure = f"no AMD card answers any more: {self._cards[0].failure}"
            raise GpuSourceError("; ".join(filter(None, (failure, self._hint))))
        return Sweep(at, tuple(readings), tuple(failures))
