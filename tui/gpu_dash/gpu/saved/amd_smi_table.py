"""``amd-smi monitor``: one row per card or partition, of ROCm 6 to 10."""

from __future__ import annotations

import re

from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.values import celsius, count, limit_watts, megahertz, percent, size_bytes, watts
from gpu_dash.model.gpu import GpuVendor

_HEADER = re.compile(r"\s*(TIMESTAMP\s+)?GPU\s+(XCP|POWER|GPU_|MEM_|GFX|PWR|VRAM|CTR)")
_CELL = re.compile(
    r"N/A|[\d.]+\s*/\s*[\d.]+\s*[KMGT]B|[\d.]+\s?(?:°C|C|W|MHz|GHz|%|[KMGT]B)(?=\s|$)|\S+"
)
_READERS = {
    "xcp": ("xcp", count),
    "power": ("power_watts", watts),
    "pwr_cap": ("power_limit_watts", limit_watts),
    "gpu_t": ("hotspot_temperature_celsius", celsius),
    "gpu_temp": ("hotspot_temperature_celsius", celsius),
    "mem_t": ("memory_temperature_celsius", celsius),
    "mem_temp": ("memory_temperature_celsius", celsius),
    "gfx_clk": ("sm_clock_mhz", megahertz),
    "gfx_clock": ("sm_clock_mhz", megahertz),
    "mem_clock": ("memory_clock_mhz", megahertz),
    "mem_clk": ("memory_clock_mhz", megahertz),
    "gfx%": ("utilization_percent", percent),
    "gfx_util": ("utilization_percent", percent),
    "mem%": ("memory_utilization_percent", percent),
    "mem_util": ("memory_utilization_percent", percent),
    "enc%": ("encoder_utilization_percent", percent),
    "dec%": ("decoder_utilization_percent", percent),
    "vram_used": ("memory_used_bytes", size_bytes),
    "vram_total": ("memory_total_bytes", size_bytes),
    "single_ecc": ("ecc_corrected", count),
    "double_ecc": ("ecc_uncorrected", count),
}
_USAGE = {
    "vram_usage": ("memory_used_bytes", "memory_total_bytes"),
    "gtt_usage": ("gtt_used_bytes", "gtt_total_bytes"),
}


def read_table(text: str) -> list[SavedCard] | None:
    """Cards of the table, the last reading of each; ``None`` if the text holds none."""
    columns: list[str] = []
    cards: dict[tuple[int, str], SavedCard] = {}
    for line in text.splitlines():
        if _HEADER.match(line):
            columns = line.lower().split()
            continue
        row = dict(zip(columns, _CELL.findall(line), strict=False))
        gpu = row.get("gpu", "")
        if gpu.isdigit():
            cards[int(gpu), row.get("xcp", "")] = _card(int(gpu), row)
    return list(cards.values()) or None


def _card(gpu: int, row: dict[str, str]) -> SavedCard:
    card = SavedCard(gpu, GpuVendor.AMD)
    for column, cell in row.items():
        if column in _READERS:
            name, read = _READERS[column]
            card.learn(name, read(cell))
        elif column in _USAGE and "/" in cell and cell != "N/A":
            used, total = (part.strip() for part in cell.split("/"))
            size = total.split()[-1]
            for name, value in zip(_USAGE[column], (used, total), strict=True):
                card.learn(name, size_bytes(value, size))
    return card
