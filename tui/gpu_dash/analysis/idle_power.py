"""What the cards draw while nothing is asked of them.

A server that waits still draws power: its part of a step's energy would be drawn without a single
request. The energy of a step net of it is what the requests cost. The reading is the session's
own: the lowest mean over :data:`WINDOW_S` seconds in which no load of ours ran.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from gpu_dash.model.events import GpuSamples
from gpu_dash.model.gpu import GpuSample
from gpu_dash.model.offered import lowest

WINDOW_S = 3.0
"""Longer than the one second over which drivers average, so that no such second is half a load."""


class IdlePower:
    """Folds the sweeps of a session."""

    def __init__(self) -> None:
        self._cards: dict[int, _Card] = {}
        self._is_loaded = False

    def set_loaded(self, is_loaded: bool) -> None:
        """Load of ours began or is over."""
        self._is_loaded = is_loaded

    def add(self, event: GpuSamples) -> None:
        """Take one sweep."""
        for sample in event.samples:
            card = self._cards.setdefault(sample.gpu, _Card())
            if self._is_loaded:
                card.forget()
            else:
                card.look(event.at, sample)

    def watts(self, gpus: Collection[int] | None = None) -> float | None:
        """What these cards draw together.

        Args:
            gpus: the cards of the server; all if it is not known which.

        Returns:
            ``None`` where one of them was not read for long enough without load, or offers no
            power.
        """
        chosen = self._cards.keys() if gpus is None else gpus
        idle = [self._cards[gpu].lowest_watts if gpu in self._cards else None for gpu in chosen]
        watts = [value for value in idle if value is not None]
        return sum(watts) if watts and len(watts) == len(idle) else None


class _Card:
    """One card's latest readings without load, and the lowest mean of those before."""

    def __init__(self) -> None:
        self.lowest_watts: float | None = None
        self._readings: deque[tuple[float, float]] = deque()
        self._sum = 0.0

    def forget(self) -> None:
        self._readings.clear()
        self._sum = 0.0

    def look(self, at: float, sample: GpuSample) -> None:
        if sample.power_watts is None:
            return
        self._readings.append((at, sample.power_watts))
        self._sum += sample.power_watts
        while at - self._readings[0][0] > WINDOW_S:
            self._sum -= self._readings.popleft()[1]
            self.lowest_watts = lowest((self.lowest_watts, self._sum / len(self._readings)))
