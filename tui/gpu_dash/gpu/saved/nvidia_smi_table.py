"""``nvidia-smi`` without options: two lines per card in a frame."""

from __future__ import annotations

import re

from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.values import celsius, limit_watts, percent, size_bytes, watts, words
from gpu_dash.model.gpu import GpuVendor

_FIRST = re.compile(
    r"\|\s*(\d+)\s+(\S.*?)\s+(?:On|Off|N/A|TCC|WDDM|MCDM)\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+)"
)
_SECOND = re.compile(
    r"\|\s*(\S+)\s+(\S+)\s+(P\d+|N/A|ERR!)\s+(\S+)\s*/\s*(\S+)\s*\|"
    r"\s*(\S+)\s*/\s*(\S+)\s*\|\s*(\S+)"
)


def read_table(text: str) -> list[SavedCard] | None:
    """Cards of the framed table; ``None`` if the text holds none."""
    cards: list[SavedCard] = []
    for line in text.splitlines():
        first, second = _FIRST.match(line), _SECOND.match(line)
        if first is not None:
            cards.append(SavedCard(int(first[1]), GpuVendor.NVIDIA))
            cards[-1].learn_name(first[2])
            cards[-1].learn_bus_id(first[3])
        elif second is not None and cards:
            fan, temperature, state, power, limit, used, total, busy = second.groups()
            card = cards[-1]
            card.learn("fan_percent", percent(fan))
            card.learn("temperature_celsius", celsius(temperature))
            card.learn("performance_state", words(state))
            card.learn("power_watts", watts(power))
            card.learn("power_limit_watts", limit_watts(limit))
            card.learn("memory_used_bytes", size_bytes(used))
            card.learn("memory_total_bytes", size_bytes(total))
            card.learn("utilization_percent", percent(busy))
    return cards or None
