"""When a card throttles, by kind: readings in, begin and end out. Pure.

* thermal: ``hw_thermal`` or ``sw_thermal``;
* power brake: ``hw_power_brake``;
* slowdown: ``hw_slowdown`` alone, and only when it stays for two samples, because the driver
  also sets it for a moment while a card changes its performance state;
* power cap: normal under decode, so it counts only while it holds a busy card's SM clock more
  than 10 % below its maximum. The deficit is smoothed over a second: under real load the clock
  crosses that line several times a second, and each crossing is no event of its own.

A throttle has ended when the card was free of it for :data:`QUIET_S`; the end carries the
moment at which it became free. Where the driver counts throttled time, an event that fell
between two samples is found in the counters and gets its begin and end too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from msgspec.structs import replace

from gpu_dash.gpu.backend import Reading
from gpu_dash.gpu.reasons import (
    HW_POWER_BRAKE,
    HW_SLOWDOWN,
    HW_THERMAL,
    SW_POWER_CAP,
    SW_THERMAL,
)
from gpu_dash.gpu.throttle_time import ThrottleTime
from gpu_dash.model.events import ThrottleBegan, ThrottleEnded
from gpu_dash.model.gpu import GpuSample, ThrottleKind

QUIET_S = 1.5
"""More than the second between two readings of the counters, so that short events in each of
them are one throttle."""
POWER_CAP_DEFICIT = 0.10
"""Part of the maximum SM clock that a power cap may take unremarked."""
POWER_CAP_SMOOTHING_S = 1.0
BUSY_PERCENT = 50.0
COUNTER_LAG_S = 0.3
"""Time by which the counters may trail the polled reasons."""

ThrottleEdge = ThrottleBegan | ThrottleEnded

_REASONS_OF = {
    ThrottleKind.THERMAL: (HW_THERMAL, SW_THERMAL, HW_SLOWDOWN),
    ThrottleKind.POWER_BRAKE: (HW_POWER_BRAKE, HW_SLOWDOWN),
    ThrottleKind.SLOWDOWN: (HW_SLOWDOWN,),
    ThrottleKind.POWER_CAP: (SW_POWER_CAP,),
}


@dataclass
class _Episode:
    kind: ThrottleKind
    began_at: float
    free_since: float | None = None
    peak_temperature_celsius: float | None = None
    lowest_sm_clock_mhz: float | None = None

    def widen(self, temperature: float | None, clock: float | None) -> None:
        peak, lowest = self.peak_temperature_celsius, self.lowest_sm_clock_mhz
        if temperature is not None and (peak is None or temperature > peak):
            self.peak_temperature_celsius = temperature
        if clock is not None and (lowest is None or clock < lowest):
            self.lowest_sm_clock_mhz = clock


class CardThrottle:
    """The throttles of one card.

    Args:
        gpu: its index.
    """

    def __init__(self, gpu: int) -> None:
        self.sm_clock_max_mhz: float | None = None
        """Without it a power cap has no measurable cost and stays unremarked."""
        self._gpu = gpu
        self._time = ThrottleTime()
        self._open: dict[ThrottleKind, _Episode] = {}
        self._polled_at: dict[ThrottleKind, float] = {}
        self._slowdown_since: float | None = None
        self._deficit = 0.0
        self._last_at: float | None = None

    def see(self, at: float, reading: Reading) -> tuple[GpuSample, list[ThrottleEdge]]:
        """Take a reading.

        Returns:
            The sample with its throttle totals, and the edges that it showed.
        """
        edges = self._see_polled(at, reading.sample)
        edges += self._see_counted(at, reading)
        edges += self._end_quiet(at)
        self._last_at = at
        sample = replace(
            reading.sample,
            throttle_thermal_s=self._time.thermal_s,
            throttle_power_s=self._time.power_s,
        )
        return sample, edges

    def miss(self, at: float) -> list[ThrottleEdge]:
        """Take note that the card gave no reading. After a while what is open has ended: it is
        known up to the last sample."""
        if self._last_at is None or at - self._last_at < QUIET_S:
            return []
        edges: list[ThrottleEdge] = [
            self._ended(
                episode, self._last_at if episode.free_since is None else episode.free_since
            )
            for episode in self._open.values()
        ]
        self._open.clear()
        self._slowdown_since = None
        self._deficit = 0.0
        return edges

    # -- the polled reasons ----------------------------------------------------------------------

    def _see_polled(self, at: float, sample: GpuSample) -> list[ThrottleEdge]:
        edges: list[ThrottleEdge] = []
        polled = self._polled_kinds(at, sample)
        for kind, began_at in polled.items():
            self._polled_at[kind] = at
            if kind not in self._open:
                reasons = tuple(r for r in sample.throttle_reasons if r in _REASONS_OF[kind])
                clock = sample.sm_clock_mhz
                edges.append(self._began(kind, began_at, reasons, sample, clock))
        for kind, episode in self._open.items():
            if kind in polled:
                episode.free_since = None
                episode.widen(sample.temperature_celsius, sample.sm_clock_mhz)
            elif episode.free_since is None:
                episode.free_since = at
        return edges

    def _polled_kinds(self, at: float, sample: GpuSample) -> dict[ThrottleKind, float]:
        """The kinds that this sample shows, each with the moment since when."""
        reasons = sample.throttle_reasons
        kinds: dict[ThrottleKind, float] = {}
        if HW_THERMAL in reasons or SW_THERMAL in reasons:
            kinds[ThrottleKind.THERMAL] = at
        if HW_POWER_BRAKE in reasons:
            kinds[ThrottleKind.POWER_BRAKE] = at
        if HW_SLOWDOWN in reasons and not kinds:
            if self._slowdown_since is None:
                self._slowdown_since = at
            else:
                kinds[ThrottleKind.SLOWDOWN] = self._slowdown_since
        else:
            self._slowdown_since = None
        if self._power_cap_costs(at, sample, alarmed=bool(kinds)):
            kinds[ThrottleKind.POWER_CAP] = at
        return kinds

    def _power_cap_costs(self, at: float, sample: GpuSample, *, alarmed: bool) -> bool:
        """Whether the power cap alone holds the clock down; a deficit beside a reason for alarm
        is put down to that."""
        clock, most = sample.sm_clock_mhz, self.sm_clock_max_mhz
        busy = sample.utilization_percent is None or sample.utilization_percent >= BUSY_PERCENT
        capped = SW_POWER_CAP in sample.throttle_reasons and busy and not alarmed
        deficit = max(0.0, 1 - clock / most) if capped and clock is not None and most else 0.0
        elapsed = 0.0 if self._last_at is None else at - self._last_at
        weight = 1 - math.exp(-elapsed / POWER_CAP_SMOOTHING_S)
        self._deficit += (deficit - self._deficit) * weight
        return capped and self._deficit > POWER_CAP_DEFICIT

    # -- the counters ----------------------------------------------------------------------------

    def _see_counted(self, at: float, reading: Reading) -> list[ThrottleEdge]:
        """Events that only the counters saw. Their clock is not known: it is past."""
        edges: list[ThrottleEdge] = []
        sample = reading.sample
        counted_before = self._time.counted_at
        counted = self._time.add(at, sample.throttle_reasons, reading.counters)
        for kind, count in counted.items():
            if self._polled_at.get(kind, -math.inf) > counted_before - COUNTER_LAG_S:
                continue
            if kind not in self._open:
                began_at = max(counted_before, at - count.seconds)
                edges.append(self._began(kind, began_at, count.reasons, sample, None))
            self._open[kind].free_since = at
        return edges

    # -- episodes --------------------------------------------------------------------------------

    def _began(
        self,
        kind: ThrottleKind,
        at: float,
        reasons: tuple[str, ...],
        sample: GpuSample,
        clock: float | None,
    ) -> ThrottleBegan:
        episode = self._open[kind] = _Episode(kind, at)
        episode.widen(sample.temperature_celsius, clock)
        return ThrottleBegan(
            at=at,
            gpu=self._gpu,
            kind=kind,
            reasons=reasons,
            temperature_celsius=sample.temperature_celsius,
            sm_clock_mhz=clock,
            sm_clock_max_mhz=self.sm_clock_max_mhz,
        )

    def _end_quiet(self, at: float) -> list[ThrottleEdge]:
        edges: list[ThrottleEdge] = []
        for kind, episode in list(self._open.items()):
            if episode.free_since is not None and at - episode.free_since >= QUIET_S:
                edges.append(self._ended(episode, episode.free_since))
                del self._open[kind]
        return edges

    def _ended(self, episode: _Episode, at: float) -> ThrottleEnded:
        return ThrottleEnded(
            at=at,
            gpu=self._gpu,
            kind=episode.kind,
            began_at=episode.began_at,
            peak_temperature_celsius=episode.peak_temperature_celsius,
            lowest_sm_clock_mhz=episode.lowest_sm_clock_mhz,
        )
