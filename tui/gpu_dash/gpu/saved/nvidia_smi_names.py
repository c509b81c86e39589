"""The names that each fact has had in ``nvidia-smi -q`` and in its XML, over the drivers.

Paths of the text are in lower case; those of the XML have underscores. The preferred name stands
first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_dash.gpu.values import (
    celsius,
    limit_watts,
    megahertz,
    number,
    percent,
    size_bytes,
    watts,
    words,
)


def microseconds(value: Any) -> float | None:
    """A counter of microseconds, in seconds."""
    counted = number(value)
    return None if counted is None else counted / 1e6


_Fact = tuple[Callable[[Any], Any], tuple[str, ...]]
FACTS: dict[str, _Fact] = {
    "uuid": (words, ("gpu uuid", "uuid")),
    "temperature_celsius": (
        celsius,
        ("temperature/gpu current temp", "temperature/gpu", "temperature/gpu_temp"),
    ),
    "memory_temperature_celsius": (
        celsius,
        ("temperature/memory current temp", "temperature/memory_temp"),
    ),
    "tlimit_celsius": (
        celsius,
        (
            "temperature/gpu current t.limit temp",
            "temperature/gpu t.limit temp",
            "temperature/gpu_temp_tlimit",
        ),
    ),
    "target_temperature_celsius": (
        celsius,
        (
            "temperature/gpu target temperature specification",
            "temperature/gpu target temperature",
            "temperature/gpu_target_temperature",
        ),
    ),
    "shutdown_temperature_celsius": (
        celsius,
        ("temperature/gpu shutdown temp", "temperature/gpu_temp_max_threshold"),
    ),
    "slowdown_temperature_celsius": (
        celsius,
        ("temperature/gpu slowdown temp", "temperature/gpu_temp_slow_threshold"),
    ),
    "max_operating_temperature_celsius": (
        celsius,
        ("temperature/gpu max operating temp", "temperature/gpu_temp_max_gpu_threshold"),
    ),
    "tlimit_shutdown_celsius": (
        celsius,
        ("temperature/gpu shutdown t.limit temp", "temperature/gpu_temp_max_tlimit_threshold"),
    ),
    "tlimit_slowdown_celsius": (
        celsius,
        ("temperature/gpu slowdown t.limit temp", "temperature/gpu_temp_slow_tlimit_threshold"),
    ),
    "tlimit_max_operating_celsius": (
        celsius,
        (
            "temperature/gpu max operating t.limit temp",
            "temperature/gpu_temp_max_gpu_tlimit_threshold",
        ),
    ),
    "sm_clock_mhz": (megahertz, ("clocks/sm", "clocks/sm_clock")),
    "graphics_clock_mhz": (megahertz, ("clocks/graphics", "clocks/graphics_clock")),
    "memory_clock_mhz": (megahertz, ("clocks/memory", "clocks/mem_clock")),
    "sm_clock_max_mhz": (megahertz, ("max clocks/sm", "max_clocks/sm_clock")),
    "memory_clock_max_mhz": (megahertz, ("max clocks/memory", "max_clocks/mem_clock")),
    "utilization_percent": (percent, ("utilization/gpu", "utilization/gpu_util")),
    "memory_utilization_percent": (percent, ("utilization/memory", "utilization/memory_util")),
    "memory_total_bytes": (
        size_bytes,
        ("fb memory usage/total", "memory usage/total", "fb_memory_usage/total"),
    ),
    "memory_used_bytes": (
        size_bytes,
        ("fb memory usage/used", "memory usage/used", "fb_memory_usage/used"),
    ),
    "memory_reserved_bytes": (size_bytes, ("fb memory usage/reserved", "fb_memory_usage/reserved")),
    "fan_percent": (percent, ("fan speed", "fan_speed")),
    "performance_state": (words, ("performance state", "performance_state")),
    "mig_mode": (words, ("mig mode/current", "mig_mode/current_mig")),
    "ecc_mode": (words, ("ecc mode/current", "ecc_mode/current_ecc")),
}
POWER_SECTIONS = (
    "gpu power readings/", "power readings/", "gpu_power_readings/", "power_readings/"
)  # fmt: skip
_CEILING = "gpu ceiling power limit/"
POWER: dict[str, _Fact] = {
    "power_watts": (
        watts,
        (
            "power draw", "power_draw", "average power draw", "average_power_draw",
            "instantaneous power draw", "instant_power_draw",
        ),
    ),
    "power_average_watts": (watts, ("average power draw", "average_power_draw")),
    "power_instant_watts": (watts, ("instantaneous power draw", "instant_power_draw")),
    "power_limit_watts": (
        limit_watts,
        (
            "enforced power limit", "enforced_power_limit", "current power limit",
            "current_power_limit", f"{_CEILING}current power limit", "power limit", "power_limit",
        ),
    ),
    "power_limit_default_watts": (
        limit_watts,
        ("default power limit", "default_power_limit", f"{_CEILING}default power limit"),
    ),
    "power_limit_min_watts": (watts, ("min power limit", "min_power_limit")),
    "power_limit_max_watts": (limit_watts, ("max power limit", "max_power_limit")),
}  # fmt: skip
OTHER_POWER: dict[str, _Fact] = {
    "memory_power_average_watts": (
        watts,
        (
            "gpu memory power readings/average power draw",
            "gpu_memory_power_readings/average_power_draw",
        ),
    ),
    "module_power_watts": (
        watts,
        (
            "module power readings/power draw",
            "module power readings/average power draw",
            "module_power_readings/power_draw",
            "module_power_readings/average_power_draw",
        ),
    ),
}
