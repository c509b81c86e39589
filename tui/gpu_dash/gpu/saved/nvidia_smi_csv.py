"""``nvidia-smi --query-gpu=… --format=csv`` with and without header and units."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from typing import Any

from gpu_dash.gpu.reasons import all_reasons, throttle_reasons, throttle_reasons_named
from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.saved.nvidia_smi import learn_limits
from gpu_dash.gpu.saved.nvidia_smi_names import microseconds
from gpu_dash.gpu.values import (
    celsius,
    count,
    limit_watts,
    megahertz,
    percent,
    size_bytes,
    watts,
    words,
)
from gpu_dash.model.gpu import GpuVendor


def _mebibytes(value: Any) -> int | None:
    return size_bytes(value, "MiB")


_FACTS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "uuid": (words, ("uuid", "gpu_uuid")),
    "temperature_celsius": (celsius, ("temperature.gpu",)),
    "tlimit_celsius": (celsius, ("temperature.gpu.tlimit",)),
    "memory_temperature_celsius": (celsius, ("temperature.memory",)),
    "power_watts": (watts, ("power.draw", "power.draw.average", "power.draw.instant")),
    "power_average_watts": (watts, ("power.draw.average",)),
    "power_instant_watts": (watts, ("power.draw.instant",)),
    "power_limit_watts": (limit_watts, ("enforced.power.limit", "power.limit")),
    "power_limit_default_watts": (limit_watts, ("power.default_limit",)),
    "power_limit_min_watts": (watts, ("power.min_limit",)),
    "power_limit_max_watts": (limit_watts, ("power.max_limit",)),
    "module_power_watts": (watts, ("module.power.draw.average", "module.power.draw.instant")),
    "sm_clock_mhz": (megahertz, ("clocks.current.sm", "clocks.sm")),
    "graphics_clock_mhz": (
        megahertz,
        ("clocks.current.graphics", "clocks.gr", "clocks.current.gr"),
    ),
    "memory_clock_mhz": (megahertz, ("clocks.current.memory", "clocks.mem", "clocks.current.mem")),
    "sm_clock_max_mhz": (megahertz, ("clocks.max.sm",)),
    "memory_clock_max_mhz": (megahertz, ("clocks.max.memory", "clocks.max.mem")),
    "utilization_percent": (percent, ("utilization.gpu",)),
    "memory_utilization_percent": (percent, ("utilization.memory",)),
    "memory_total_bytes": (_mebibytes, ("memory.total",)),
    "memory_used_bytes": (_mebibytes, ("memory.used",)),
    "memory_reserved_bytes": (_mebibytes, ("memory.reserved",)),
    "fan_percent": (percent, ("fan.speed",)),
    "performance_state": (words, ("pstate",)),
    "mig_mode": (words, ("mig.mode.current",)),
    "ecc_mode": (words, ("ecc.mode.current",)),
    "pcie_width": (count, ("pcie.link.width.current",)),
    "sw_power_cap_s": (microseconds, ("clocks_event_reasons_counters.sw_power_cap",)),
    "sw_thermal_s": (microseconds, ("clocks_event_reasons_counters.sw_thermal_slowdown",)),
    "hw_thermal_s": (microseconds, ("clocks_event_reasons_counters.hw_thermal_slowdown",)),
    "hw_power_brake_s": (microseconds, ("clocks_event_reasons_counters.hw_power_brake_slowdown",)),
}
_NAMES = {name for _, names in _FACTS.values() for name in names} | {
    "name", "gpu_name", "index", "pci.bus_id", "gpu_bus_id", "driver_version",
}  # fmt: skip
_MASKS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_ONE_REASON = re.compile(r"clocks_(?:event|throttle)_reasons\.(?!active|supported)(.+)")
_UNIT = re.compile(r"\s*\[.*\]\s*$")
_UUID = re.compile(r"GPU-[0-9a-f-]{36}$")
_PSTATE = re.compile(r"P\d{1,2}$")
_BUS_ID = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d$")
_PRODUCT = re.compile(r"(NVIDIA|GeForce|Tesla|Quadro|RTX|GRID)\b", re.IGNORECASE)


class MissingHeader(Exception):
    """A text without a header line: only what shows by its shape is known.

    Args:
        cards: with that.
    """

    def __init__(self, cards: list[SavedCard]) -> None:
        self.cards = cards
        super().__init__(
            "the CSV has no header line, so its numbers have no meaning; name them with "
            "--columns, as in nvidia-smi's --query-gpu"
        )


def read_csv(text: str, columns: Sequence[str] = ()) -> list[SavedCard] | None:
    """Cards of the table, the last row of each; ``None`` if the text is something else.

    Args:
        text: the output.
        columns: what was queried, for an output without a header.

    Raises:
        MissingHeader: the text looks like such a table, but nobody says what its columns are.
    """
    rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if row]
    start, header = _header(rows)
    if not header and columns:
        header = [column.strip().lower() for column in columns]
    body = [row for row in rows[start:] if not header or len(row) == len(header)]
    if header:
        cards = [_card(at, dict(zip(header, row, strict=True))) for at, row in enumerate(body)]
        return list({card.facts.get("pci_bus_id", card.gpu): card for card in cards}.values())
    shaped = [row for row in rows if len(row) > 2 and any(_UUID.match(cell) for cell in row)]
    if shaped and len(shaped) == len(rows):
        raise MissingHeader([_by_shape(gpu, row) for gpu, row in enumerate(shaped)])
    return None


def _header(rows: list[list[str]]) -> tuple[int, list[str]]:
    for at, row in enumerate(rows):
        names = [_UNIT.sub("", cell).strip().lower() for cell in row]
        if any(name in _NAMES for name in names):
            return at + 1, names
    return 0, []


def _card(place: int, row: dict[str, str]) -> SavedCard:
    index = row.get("index", "").strip()
    card = SavedCard(int(index) if index.isdigit() else place, GpuVendor.NVIDIA)
    for key in ("name", "gpu_name"):
        card.learn_name(row.get(key, ""))
    for key in ("pci.bus_id", "gpu_bus_id"):
        card.learn_bus_id(row.get(key, ""))
    card.learn_from(row, _FACTS)
    card.learn("sm_clock_mhz", card.facts.get("graphics_clock_mhz"))
    learn_limits(card)
    _learn_reasons(card, row)
    return card


def _learn_reasons(card: SavedCard, row: dict[str, str]) -> None:
    for key in _MASKS:
        mask = row.get(key, "").strip()
        if mask.startswith("0x"):
            card.facts["throttle_mask"] = mask
            card.facts["clocks_event_reasons"] = all_reasons(int(mask, 16))
            card.facts["throttle_reasons"] = throttle_reasons(int(mask, 16))
            return
    said = {match[1]: value for key, value in row.items() if (match := _ONE_REASON.match(key))}
    if any(value in ("Active", "Not Active") for value in said.values()):
        names = [name for name, value in said.items() if value == "Active"]
        card.facts["clocks_event_reasons"], card.facts["throttle_reasons"] = throttle_reasons_named(
            names
        )


def _by_shape(gpu: int, row: list[str]) -> SavedCard:
    card = SavedCard(gpu, GpuVendor.NVIDIA)
    for cell in row:
        if _UUID.match(cell):
            card.learn("uuid", cell)
        elif _PSTATE.match(cell):
            card.learn("performance_state", cell)
        elif _BUS_ID.match(cell):
            card.learn_bus_id(cell)
        elif _PRODUCT.match(cell):
            card.learn_name(cell)
    return card
