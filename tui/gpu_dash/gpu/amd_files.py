"""What amdgpu's files in sysfs mean: their units, their labels, their starred lines. Pure."""

from __future__ import annotations

import re

SENSORS = {"edge": "edge", "junction": "hotspot", "mem": "memory"}
"""The driver's names of temperature sensors, and ours."""

_LEVEL = re.compile(r"^\s*\w+:\s*(\d+(?:\.\d+)?)\s*Mhz\s*(\*)?", re.IGNORECASE | re.MULTILINE)


def millidegrees(text: str) -> float | None:
    """A temperature file. Below what a sensor can say is "no value"."""
    value = _integer(text)
    return None if value is None or not -60_000 < value <= 200_000 else value / 1000


def microwatts(text: str) -> float | None:
    """A power file."""
    value = _integer(text)
    return None if value is None or not 0 <= value < 5_000_000_000 else value / 1e6


def hertz_as_mhz(text: str) -> float | None:
    """A clock file of hwmon."""
    value = _integer(text)
    return None if value is None or not 0 <= value < 30_000_000_000 else value / 1e6


def busy_percent(text: str) -> float | None:
    """A utilisation file."""
    value = _integer(text)
    return None if value is None or not 0 <= value <= 100 else float(value)


def counted(text: str) -> int | None:
    """A file that counts bytes, revolutions or millivolts."""
    value = _integer(text)
    return None if value is None or value < 0 or value >= 2**63 else value


def current_clock_mhz(levels: str) -> float | None:
    """The starred line of a ``pp_dpm_*clk`` file."""
    return next((float(match[1]) for match in _LEVEL.finditer(levels) if match[2]), None)


def highest_clock_mhz(levels: str) -> float | None:
    """The highest line of a ``pp_dpm_*clk`` file."""
    return max((float(match[1]) for match in _LEVEL.finditer(levels)), default=None)


def _integer(text: str) -> int | None:
    try:
        return int(text.strip())
    except ValueError:
        return None
