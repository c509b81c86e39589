"""What the cards did while a step's window was open, folded sweep by sweep.

Samples and the edges of a window come from different processes, so an edge may arrive after
samples that lie beyond it. The newest sweeps therefore wait until they are :data:`LATE_S` old
before they are folded; the agent needs no other history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from gpu_dash.model.events import GpuSamples
from gpu_dash.model.gpu import GpuSample
from gpu_dash.model.offered import highest, lowest, total

LATE_S = 2.0
"""How late an edge of the window may arrive without a sweep landing on its wrong side."""


@dataclass(frozen=True)
class StepGpus:
    """The cards in one window. ``None``: no card offers it."""

    peak_temperature_celsius: float | None = None
    min_sm_clock_mhz: float | None = None
    peak_memory_used_bytes: int | None = None
    """Of the fullest card."""
    peak_total_power_watts: float | None = None
    """Of all cards of the server in one sweep."""
    throttle_thermal_s: float | None = None
    """Summed over the cards: two that throttle for a second each are two seconds."""
    energy_joules: float | None = None
    """Summed over the cards."""


class StepGpuWindow:
    """Folds the sweeps between :meth:`begin` and :meth:`end` of one step after the other.

    Sweeps may be added all the time; the counters then start from the last reading before the
    window opened, which is nearer to the truth than the first one in it.
    """

    def __init__(self) -> None:
        self._waiting: deque[GpuSamples] = deque()
        self._cards: dict[int, _Card] = {}
        self._gpus: Collection[int] | None = None
        self._opened_at: float | None = None
        self._closed: StepGpus | None = None
        self._peak_total_power: float | None = None

    def begin(self, at: float, gpus: Collection[int] | None = None) -> None:
        """A window opened.

        Args:
            at: monotonic moment of its opening.
            gpus: the cards of the server; all if it is not known which.
        """
        self._fold_until(at)
        for card in self._cards.values():
            card.reset()
        self._gpus = gpus
        self._peak_total_power = None
        self._opened_at = at

    def add(self, event: GpuSamples) -> None:
        """Take one sweep."""
        self._waiting.append(event)
        self._fold_until(event.at - LATE_S)

    def close(self, at: float) -> None:
        """The window closed at this moment, though requests of its step may still go on. Told
        within :data:`LATE_S`, no sweep after it counts. Does nothing when it is closed."""
        if self._opened_at is not None:
            self._fold_until(at)
            self._opened_at = None
            self._closed = self._summary()

    def end(self, at: float) -> StepGpus | None:
        """What the cards did in the window, which closed at this moment unless it was closed
        before; ``None`` if no card was read in it."""
        self.close(at)
        return self._closed

    def _summary(self) -> StepGpus | None:
        cards = [card for card in self._cards.values() if card.was_read]
        if not cards:
            return None
        return StepGpus(
            peak_temperature_celsius=highest(card.peak_temperature for card in cards),
            min_sm_clock_mhz=lowest(card.min_clock for card in cards),
            peak_memory_used_bytes=highest(card.peak_memory for card in cards),
            peak_total_power_watts=self._peak_total_power,
            throttle_thermal_s=total(card.thermal_s.counted for card in cards),
            energy_joules=total(card.energy_joules for card in cards),
        )

    def _fold_until(self, at: float) -> None:
        while self._waiting and self._waiting[0].at <= at:
            self._fold(self._waiting.popleft())

    def _fold(self, event: GpuSamples) -> None:
        # The last sweep up to the opening is where the counters stood, as the last one up to the
        # closing is where they stand, so that both edges err alike.
        is_inside = self._opened_at is not None and event.at > self._opened_at
        chosen = [s for s in event.samples if self._gpus is None or s.gpu in self._gpus]
        for sample in chosen:
            card = self._cards.setdefault(sample.gpu, _Card())
            if is_inside:
                card.look(sample)
            card.stand(sample)
            if not is_inside:
                card.reset()
        if is_inside:
            power = total(sample.power_watts for sample in chosen)
            self._peak_total_power = highest((self._peak_total_power, power))


class _Counter:
    """A counter of a card, and what it advanced in the window."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._counted = 0.0

    def advance(self, value: float | None) -> None:
        """Count from where it stood; one that went back was restarted with its driver."""
        if value is not None and self._last is not None:
            self._counted += max(0.0, value - self._last)

    def stand(self, value: float | None) -> None:
        """Note where it stands."""
        if value is not None:
            self._last = value

    def reset(self) -> None:
        """Begin a window."""
        self._counted = 0.0

    @property
    def counted(self) -> float | None:
        """``None``: the card has no such counter."""
        return None if self._last is None else self._counted


class _Card:
    """One card in the window."""

    def __init__(self) -> None:
        self.energy = _Counter()
        self.thermal_s = _Counter()
        self._spent_since = 0.0
        self.reset()

    def reset(self) -> None:
        self._spent_before = self._spent_since
        self.energy.reset()
        self.thermal_s.reset()
        self.was_read = False
        self.peak_temperature: float | None = None
        self.min_clock: float | None = None
        self.peak_memory: int | None = None

    @property
    def energy_joules(self) -> float | None:
        """What the counter advanced, and what it had not told yet at either edge of the window.

        It is read once a second, so of a window of ten seconds it alone would miss up to a tenth.
        """
        counted = self.energy.counted
        return None if counted is None else counted + self._spent_since - self._spent_before

    def stand(self, sample: GpuSample) -> None:
        self._spent_since = (sample.power_watts or 0.0) * (sample.energy_age_s or 0.0)
        self.energy.stand(sample.energy_joules)
        self.thermal_s.stand(sample.throttle_thermal_s)

    def look(self, sample: GpuSample) -> None:
        self.was_read = True
        self.energy.advance(sample.energy_joules)
        self.thermal_s.advance(sample.throttle_thermal_s)
        self.peak_temperature = highest((self.peak_temperature, sample.temperature_celsius))
        self.min_clock = lowest((self.min_clock, sample.sm_clock_mhz))
        self.peak_memory = highest((self.peak_memory, sample.memory_used_bytes))
