"""How long a card has throttled: from the driver's counters, else from the polled reasons. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu_dash.gpu.backend import ThrottleCounters
from gpu_dash.gpu.reasons import HW_POWER_BRAKE, HW_THERMAL, SW_POWER_CAP, SW_THERMAL, THERMAL
from gpu_dash.model.gpu import ThrottleKind

LONGEST_POLL_S = 1.0
"""A polled reason vouches for no more time than this: nobody looked when samples came later."""

_THERMAL = (SW_THERMAL, HW_THERMAL, THERMAL)
_POWER = (SW_POWER_CAP, HW_POWER_BRAKE)
_ALARMS = ((ThrottleKind.THERMAL, _THERMAL), (ThrottleKind.POWER_BRAKE, (HW_POWER_BRAKE,)))


@dataclass(frozen=True, slots=True)
class Counted:
    """What the counters of one kind grew by since their last reading."""

    seconds: float
    reasons: tuple[str, ...]


class ThrottleTime:
    """Seconds of thermal and of power throttling since the source was opened.

    Two reasons may hold at once and be counted twice by the driver, so the longest of them is
    taken: the shortest time that explains them all.
    """

    def __init__(self) -> None:
        self.thermal_s = 0.0
        self.power_s = 0.0
        self.counted_at = -math.inf
        """Moment of the last reading of the counters."""
        self._counters: dict[str, float] = {}
        self._polled_at: float | None = None

    def add(
        self, at: float, reasons: tuple[str, ...], counters: ThrottleCounters | None
    ) -> dict[ThrottleKind, Counted]:
        """Take a reading.

        Returns:
            The kinds of alarm whose counters grew. A power cap is not among them: whether it
            cost anything is seen in the clock alone.
        """
        elapsed = 0.0 if self._polled_at is None else min(at - self._polled_at, LONGEST_POLL_S)
        self._polled_at = at
        growth: dict[str, float] = {}
        if counters is not None:
            growth = self._growth(counters)
            self.counted_at = at
        self.thermal_s += self._throttled(_THERMAL, reasons, elapsed, growth)
        self.power_s += self._throttled(_POWER, reasons, elapsed, growth)
        return {
            kind: Counted(max(growth[name] for name in grown), grown)
            for kind, names in _ALARMS
            if (grown := tuple(name for name in names if growth.get(name, 0.0) > 0))
        }

    def _throttled(
        self,
        names: tuple[str, ...],
        reasons: tuple[str, ...],
        elapsed: float,
        growth: dict[str, float],
    ) -> float:
        by_counter = max((growth.get(name, 0.0) for name in names), default=0.0)
        polled = any(name in reasons and not self._is_counted(name) for name in names)
        return max(by_counter, elapsed if polled else 0.0)

    def _is_counted(self, name: str) -> bool:
        return name in self._counters or (name in _THERMAL and THERMAL in self._counters)

    def _growth(self, counters: ThrottleCounters) -> dict[str, float]:
        growth = {}
        for name, now in (
            (SW_POWER_CAP, counters.sw_power_cap_s),
            (SW_THERMAL, counters.sw_thermal_s),
            (HW_THERMAL, counters.hw_thermal_s),
            (THERMAL, counters.thermal_s),
            (HW_POWER_BRAKE, counters.hw_power_brake_s),
        ):
            if now is None:
                continue
            # a counter that fell was started anew; what it lost nobody knows
            growth[name] = max(0.0, now - self._counters.get(name, now))
            self._counters[name] = now
        return growth
