"""``rocm-smi`` without options: one row per card, of ROCm 2 to 7.

Cells hold blanks (``NPS1, SPX``, ``5.0GB, x16``) and their columns come and go, so a cell
goes on behind a comma and inside brackets.
"""

from __future__ import annotations

import re

from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.values import celsius, limit_watts, megahertz, percent, watts, words
from gpu_dash.model.gpu import GpuVendor

_HEADER = re.compile(r"\s*(GPU|Device|DEVICE)\b.*\b(Temp|SCLK|Perf)")
_ROW = re.compile(r"\s*(\d+)\s")
_TOKEN = re.compile(r"\[[^\]]*\]|[^\s,]+(?:,\s*[^\s,]+)*")
_COLUMN = re.compile(r"\[[^\]]*\]|\S+(?: \S+)*")
_NAME_INDENT = 8


def read_table(text: str) -> list[SavedCard] | None:
    """Cards of the concise table; ``None`` if the text holds none."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        return None
    columns = [match[0].lower() for match in _COLUMN.finditer(lines[start].strip())]
    under = lines[start + 1].lower() if start + 1 < len(lines) else ""
    cards: list[SavedCard] = []
    for line in lines[start + 1 :]:
        row = _ROW.match(line)
        if row is not None:
            cells = [match[0] for match in _TOKEN.finditer(line)]
            cards.append(_card(int(row[1]), columns, cells, has_junction="junction" in under))
        elif cards and line.startswith(" " * _NAME_INDENT) and line.strip():
            cards[-1].learn_name(line)
    return cards or None


def _card(gpu: int, columns: list[str], cells: list[str], *, has_junction: bool) -> SavedCard:
    card = SavedCard(gpu, GpuVendor.AMD)
    for column, cell in zip(columns, cells, strict=False):
        if column.startswith("temp"):
            sensor = "hotspot" if has_junction or "junction" in column else "edge"
            card.learn(f"{sensor}_temperature_celsius", celsius(cell))
        elif column.startswith(("avgpwr", "power", "socket power")):
            card.learn("power_watts", watts(cell))
        elif column == "pwrcap":
            card.learn("power_limit_watts", limit_watts(cell))
        elif column == "sclk":
            card.learn("sm_clock_mhz", megahertz(cell))
        elif column == "mclk":
            card.learn("memory_clock_mhz", megahertz(cell))
        elif column == "fan":
            card.learn("fan_percent", percent(cell))
        elif column == "vram%":
            card.learn("memory_used_percent", percent(cell))
        elif column == "gpu%":
            card.learn("utilization_percent", percent(cell))
        elif column == "partitions":
            card.learn("partitions", words(cell))
    return card
