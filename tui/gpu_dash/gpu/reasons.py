"""Clocks event (throttle) reasons: the driver's bits and their names."""

from __future__ import annotations

from functools import cache

SW_POWER_CAP = "sw_power_cap"
HW_SLOWDOWN = "hw_slowdown"
SW_THERMAL = "sw_thermal"
HW_THERMAL = "hw_thermal"
HW_POWER_BRAKE = "hw_power_brake"
THERMAL = "thermal"
"""Not a bit: a counter that does not tell software and hardware apart."""

_NAMES = {
    0x001: "gpu_idle",
    0x002: "applications_clocks",
    0x004: SW_POWER_CAP,
    0x008: HW_SLOWDOWN,
    0x010: "sync_boost",
    0x020: SW_THERMAL,
    0x040: HW_THERMAL,
    0x080: HW_POWER_BRAKE,
    0x100: "display_clock",
}
_NO_THROTTLING = frozenset({"gpu_idle", "applications_clocks", "sync_boost", "display_clock"})


@cache
def throttle_reasons(bits: int) -> tuple[str, ...]:
    """Names of the reasons that are throttling, in the order of their bits.

    A bit that has no name is kept as hex, so that what a newer driver says is not lost.
    """
    reasons = []
    remaining = bits
    while remaining:
        bit = remaining & -remaining
        remaining ^= bit
        name = _NAMES.get(bit, f"0x{bit:x}")
        if name not in _NO_THROTTLING:
            reasons.append(name)
    return tuple(reasons)
