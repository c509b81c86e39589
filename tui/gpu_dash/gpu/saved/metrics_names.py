"""Fields of amdgpu's gpu_metrics by their kernel names, as tools print them decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_dash.gpu.amd_throttle import amd_throttle_reasons
from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.values import celsius, count, megahertz, number, percent, watts

_FACTS = {
    "edge_temperature_celsius": (celsius, ("temperature_edge",)),
    "hotspot_temperature_celsius": (celsius, ("temperature_hotspot",)),
    "memory_temperature_celsius": (celsius, ("temperature_mem",)),
    "power_watts": (watts, ("curr_socket_power", "current_socket_power", "average_socket_power")),
    "utilization_percent": (percent, ("average_gfx_activity",)),
    "memory_utilization_percent": (percent, ("average_umc_activity",)),
    "sm_clock_mhz": (megahertz, ("current_gfxclk", "average_gfxclk_frequency")),
    "memory_clock_mhz": (megahertz, ("current_uclk", "average_uclk_frequency")),
    "throttle_status": (count, ("throttle_status",)),
    "fan_rpm": (count, ("current_fan_speed",)),
    "pcie_width": (count, ("pcie_link_width",)),
}
_ALL_ONES = (0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF)
NAMES = frozenset(name for _, names in _FACTS.values() for name in names)


def learn_metrics(card: SavedCard, values: Mapping[str, Any]) -> None:
    """Take what a decoded table says; all ones are missing values."""
    known = {
        name: value
        for name, value in values.items()
        if not isinstance(value, tuple) and number(value) not in (None, *_ALL_ONES)
    }
    for name in ("current_gfxclk", "current_uclk", "current_socclk"):
        clocks = values.get(name)
        if isinstance(clocks, tuple):
            known[name] = next((clock for clock in clocks if clock is not None), None)
    card.learn_from(known, _FACTS)
    hbm = values.get("temperature_hbm")
    if isinstance(hbm, tuple) and any(hbm):
        card.learn("hbm_temperatures_celsius", tuple(float(one) for one in hbm if one))
    speed = number(known.get("pcie_link_speed"))
    if speed is not None:
        card.learn("pcie_speed_gts", speed / 10)
    bits = count(known.get("indep_throttle_status"))
    if bits is not None:
        hotspot = card.facts.get("hotspot_temperature_celsius")
        card.learn("throttle_reasons", amd_throttle_reasons(bits, hotspot))
