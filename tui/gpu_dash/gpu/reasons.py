"""Clocks event (throttle) reasons: the driver's bits and their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
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


_SPELLINGS = {
    "idle": "gpu_idle",
    "applications_clocks_setting": "applications_clocks",
    "hw_thermal_slowdown": HW_THERMAL,
    "sw_thermal_slowdown": SW_THERMAL,
    "hw_power_brake_slowdown": HW_POWER_BRAKE,
    "display_clock_setting": "display_clock",
    "display_clocks_setting": "display_clock",
}


def throttle_reasons_named(active: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The reasons that ``nvidia-smi`` names in words, in any of its spellings.

    Returns:
        All of them by the names used here, and those that are throttling.
    """
    names = []
    for words in active:
        name = re.sub(r"^clocks_(event|throttle)_reasons?[_.]", "", words.lower().replace(" ", "_"))
        names.append(_SPELLINGS.get(name, name))
    return tuple(names), tuple(name for name in names if name not in _NO_THROTTLING)


def all_reasons(bits: int) -> tuple[str, ...]:
    """Names of all reasons, those that are no throttling too."""
    return tuple(_NAMES.get(1 << at, f"0x{1 << at:x}") for at in range(64) if bits >> at & 1)
