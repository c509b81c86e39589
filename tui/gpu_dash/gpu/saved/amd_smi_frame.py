"""``amd-smi`` without arguments, of ROCm 7: two lines per card in a frame."""

from __future__ import annotations

import re

from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.values import celsius, count, limit_watts, percent, size_bytes, watts, words
from gpu_dash.model.gpu import GpuVendor

_FIRST = re.compile(
    r"\|\s*(?P<bdf>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)\s+(?P<name>\S.*?)\s*\|"
    r"\s*(?P<mem>N/A|\d+ ?%)\s+(?P<temp>N/A|\d+ ?°?C)\s+(?P<uec>\S+)\s+"
    r"(?P<power>N/A|[\d.]+)\s*/\s*(?P<cap>N/A|[\d.]+)(?: ?W)?\s*\|",
    re.IGNORECASE,
)
_SECOND = re.compile(
    r"\|\s*(?P<gpu>\d+)\s.*?(?P<partition>\S+)\s*\|\s*(?P<gfx>N/A|\d+ ?%)\s+(?P<fan>N/A|\d+ ?%)\s+"
    r"(?P<used>N/A|[\d.]+)\s*/\s*(?P<total>N/A|[\d.]+)(?: ?(?P<unit>[KMGT]i?B))?\s*\|"
)


def read_frame(text: str) -> list[SavedCard] | None:
    """Cards of the frame; ``None`` if the text holds none."""
    cards: list[SavedCard] = []
    first: re.Match[str] | None = None
    for line in text.splitlines():
        second = _SECOND.match(line)
        if first is not None and second is not None:
            cards.append(_card(first, second))
        first = _FIRST.match(line)
    return cards or None


def _card(first: re.Match[str], second: re.Match[str]) -> SavedCard:
    card = SavedCard(int(second["gpu"]), GpuVendor.AMD)
    card.learn_bus_id(first["bdf"])
    card.learn_name(first["name"])
    card.learn("hotspot_temperature_celsius", celsius(first["temp"]))
    card.learn("power_watts", watts(first["power"]))
    card.learn("power_limit_watts", limit_watts(first["cap"]))
    card.learn("memory_utilization_percent", percent(first["mem"]))
    card.learn("ecc_uncorrected", count(first["uec"]))
    card.learn("utilization_percent", percent(second["gfx"]))
    card.learn("fan_percent", percent(second["fan"]))
    for name, value in (("used", second["used"]), ("total", second["total"])):
        card.learn(f"memory_{name}_bytes", size_bytes(value, second["unit"] or "MB"))
    card.learn("partitions", words(second["partition"]))
    return card
