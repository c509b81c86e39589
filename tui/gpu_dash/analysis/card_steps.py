"""What throttling cost each card in each step: seconds of it, and clock that was missing. Pure.

* Throttle seconds: what the card's totals grew by inside the step's window, thermal and power
  apart. A power cap is normal under decode, so its seconds alone mean little.
* Clock deficit: ``1 − SM clock / its maximum``, averaged over the window's readings in which the
  card was busy. This is what a power cap costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import msgspec

from gpu_dash.model.offered import highest, lowest

BUSY_PERCENT = 50.0


@dataclass(frozen=True)
class Window:
    """The time in which a step is measured, in seconds of any one clock."""

    step: int
    concurrency: int | None
    """``None``: an open loop."""
    opens_s: float
    closes_s: float
    request_rate: float | None = None
    """Of an open loop."""


@dataclass(frozen=True)
class CardReading:
    """One reading of one card, on the windows' clock. ``None``: not offered."""

    at_s: float
    gpu: int
    sm_clock_mhz: float | None
    sm_clock_max_mhz: float | None
    utilization_percent: float | None
    temperature_celsius: float | None
    throttle_thermal_s: float | None
    throttle_power_s: float | None
    lowest_sm_clock_mhz: float | None = None
    """Of the time since the reading before, where more was seen than is written."""


class CardStep(msgspec.Struct, frozen=True, kw_only=True):
    """One card in one step."""

    step: int
    concurrency: int | None
    request_rate: float | None = None
    gpu: int
    throttle_thermal_s: float | None
    throttle_power_s: float | None
    clock_deficit: float | None
    """0 to 1; ``None``: the card was never busy, or does not tell its clocks."""
    min_sm_clock_mhz: float | None
    peak_temperature_celsius: float | None


def card_steps(windows: Sequence[Window], readings: Iterable[CardReading]) -> list[CardStep]:
    """Every card in every window that has readings of it, by step and card.

    Args:
        windows: in the order of their time.
        readings: likewise.
    """
    accounts: dict[tuple[int, int], _Account] = {}
    before: dict[int, CardReading] = {}
    places = iter(windows)
    window = next(places, None)
    for reading in readings:
        while window is not None and reading.at_s > window.closes_s:
            window = next(places, None)
        if window is None:
            break
        if reading.at_s > window.opens_s:
            key = (window.step, reading.gpu)
            account = accounts.setdefault(key, _Account(window, before.get(reading.gpu, reading)))
            account.add(reading)
        before[reading.gpu] = reading
    return [accounts[key].result(key[1]) for key in sorted(accounts)]


@dataclass
class _Account:
    window: Window
    first: CardReading
    """The last reading before the window, from which its totals count."""
    last: CardReading | None = None
    deficits: list[float] = field(default_factory=list)
    clocks: list[float | None] = field(default_factory=list)
    temperatures: list[float | None] = field(default_factory=list)

    def add(self, reading: CardReading) -> None:
        self.last = reading
        self.temperatures.append(reading.temperature_celsius)
        self.clocks += [reading.sm_clock_mhz, reading.lowest_sm_clock_mhz]
        busy = reading.utilization_percent is None or reading.utilization_percent >= BUSY_PERCENT
        if busy and reading.sm_clock_mhz is not None and reading.sm_clock_max_mhz:
            self.deficits.append(max(0.0, 1 - reading.sm_clock_mhz / reading.sm_clock_max_mhz))

    def result(self, gpu: int) -> CardStep:
        last = self.last or self.first
        return CardStep(
            step=self.window.step,
            concurrency=self.window.concurrency,
            request_rate=self.window.request_rate,
            gpu=gpu,
            throttle_thermal_s=_growth(self.first.throttle_thermal_s, last.throttle_thermal_s),
            throttle_power_s=_growth(self.first.throttle_power_s, last.throttle_power_s),
            clock_deficit=fmean(self.deficits) if self.deficits else None,
            min_sm_clock_mhz=lowest(self.clocks),
            peak_temperature_celsius=highest(self.temperatures),
        )


def _growth(before: float | None, now: float | None) -> float | None:
    """What a total grew by; one that fell was started anew."""
    return None if before is None or now is None else max(0.0, now - before)
