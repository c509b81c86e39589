"""Why an AMD card throttles: independent status bits, and residencies that are counted. Pure.

The chip-specific ``throttle_status`` is not decoded: its bits mean another thing on each chip.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_dash.gpu.backend import ThrottleCounters
from gpu_dash.gpu.gpu_metrics import GpuMetrics
from gpu_dash.gpu.reasons import HW_POWER_BRAKE, HW_THERMAL, SW_POWER_CAP

HOTSPOT_BIT = 36
HOTSPOT_BELIEVED_CELSIUS = 90.0
"""Below this the hotspot bit is no throttling: some chips set it for good, also when idle."""
_POWER_BITS = frozenset(range(8))
_CURRENT_BITS = frozenset(range(16, 24))
_THERMAL_BITS = frozenset(range(32, 46))
_PROCHOT_BITS = frozenset((46, 47))
_NAMED_BITS = _POWER_BITS | _CURRENT_BITS | _THERMAL_BITS | _PROCHOT_BITS


def amd_throttle_reasons(bits: int, hotspot_celsius: float | None) -> tuple[str, ...]:
    """The reasons by the names that all vendors share; bits without one as hex.

    Power and current limits are a power cap; PROCHOT is the board's signal, a power brake.

    Args:
        bits: ``indep_throttle_status``.
        hotspot_celsius: whether a lone hotspot bit is believed.
    """
    is_set = {bit for bit in range(64) if bits >> bit & 1}
    if hotspot_celsius is None or hotspot_celsius < HOTSPOT_BELIEVED_CELSIUS:
        is_set.discard(HOTSPOT_BIT)
    reasons = []
    if is_set & (_POWER_BITS | _CURRENT_BITS):
        reasons.append(SW_POWER_CAP)
    if is_set & _THERMAL_BITS:
        reasons.append(HW_THERMAL)
    if is_set & _PROCHOT_BITS:
        reasons.append(HW_POWER_BRAKE)
    return (*reasons, *(f"0x{1 << bit:x}" for bit in sorted(is_set - _NAMED_BITS)))


@dataclass(frozen=True, slots=True)
class _Residencies:
    accumulation: int
    power_cap: int
    thermal: int
    prochot: int


class ResidencyTime:
    """Turns the residencies of gpu_metrics 1.6 and later into seconds and into what holds now.

    A residency and the accumulation counter count the same ticks, so the part of an interval
    that was throttled is the quotient of their growths. A residency that stands still while the
    counter runs means no throttling, whatever its total: some drivers report totals that never
    were throttling. A chip whose residencies all grow with the counter at rest is not believed
    either: that is how some firmware idles.
    """

    def __init__(self) -> None:
        self._before: tuple[float, _Residencies] | None = None
        self._power_cap_s = 0.0
        self._thermal_s = 0.0
        self._prochot_s = 0.0

    def add(
        self, at: float, metrics: GpuMetrics, *, busy: bool
    ) -> tuple[tuple[str, ...], ThrottleCounters] | None:
        """Take a table.

        Args:
            at: its moment.
            metrics: the table.
            busy: the card works; one that idles is not throttled.

        Returns:
            The reasons that held since the table before, and the seconds since the first;
            ``None`` if the chip does not count residencies.
        """
        now = _residencies(metrics)
        if now is None:
            return None
        before, self._before = self._before, (at, now)
        reasons: list[str] = []
        if before is not None and busy:
            elapsed, then = at - before[0], before[1]
            ticks = now.accumulation - then.accumulation
            if ticks > 0 and elapsed > 0:
                power = _part(now.power_cap - then.power_cap, ticks)
                thermal = _part(now.thermal - then.thermal, ticks)
                prochot = _part(now.prochot - then.prochot, ticks)
                self._power_cap_s += power * elapsed
                self._thermal_s += thermal * elapsed
                self._prochot_s += prochot * elapsed
                reasons += [SW_POWER_CAP] * (power > 0)
                reasons += [HW_THERMAL] * (thermal > 0)
                reasons += [HW_POWER_BRAKE] * (prochot > 0)
        counters = ThrottleCounters(
            sw_power_cap_s=self._power_cap_s,
            hw_thermal_s=self._thermal_s,
            hw_power_brake_s=self._prochot_s,
        )
        return tuple(reasons), counters


def _part(growth: int, ticks: int) -> float:
    return min(max(growth / ticks, 0.0), 1.0)


def _residencies(metrics: GpuMetrics) -> _Residencies | None:
    accumulation = metrics.number("accumulation_counter")
    if accumulation is None:
        return None
    thermal = ("socket_thm_residency_acc", "vr_thm_residency_acc", "hbm_thm_residency_acc")
    return _Residencies(
        accumulation,
        metrics.number("ppt_residency_acc") or 0,
        # the longest of them: they may hold at once
        max(metrics.number(name) or 0 for name in thermal),
        metrics.number("prochot_residency_acc") or 0,
    )
