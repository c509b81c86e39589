"""``nvidia-smi dmon``: one row per card and second under a head with names and one with units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.values import celsius, count, megahertz, percent, size_bytes, watts
from gpu_dash.model.gpu import GpuVendor


def _mebibytes(value: Any) -> int | None:
    return size_bytes(value, "MiB")


_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "pwr": ("power_watts", watts),
    "gtemp": ("temperature_celsius", celsius),
    "temp": ("temperature_celsius", celsius),
    "mtemp": ("memory_temperature_celsius", celsius),
    "sm": ("utilization_percent", percent),
    "mem": ("memory_utilization_percent", percent),
    "enc": ("encoder_utilization_percent", percent),
    "dec": ("decoder_utilization_percent", percent),
    "mclk": ("memory_clock_mhz", megahertz),
    "pclk": ("sm_clock_mhz", megahertz),
    "fb": ("memory_used_bytes", _mebibytes),
    "sbecc": ("ecc_corrected", count),
    "dbecc": ("ecc_uncorrected", count),
}


def read_dmon(text: str) -> list[SavedCard] | None:
    """Cards with their last row; ``None`` if the text is something else."""
    columns: list[str] = []
    cards: dict[int, SavedCard] = {}
    for line in text.splitlines():
        cells = line.replace("#", " ").lower().split()
        if line.lstrip().startswith("#"):
            columns = cells if "gpu" in cells and "pid" not in cells else columns
        elif columns and len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            if row["gpu"].isdigit():
                cards[int(row["gpu"])] = _card(int(row["gpu"]), row)
    return list(cards.values()) or None


def _card(gpu: int, row: dict[str, str]) -> SavedCard:
    card = SavedCard(gpu, GpuVendor.NVIDIA)
    for column, cell in row.items():
        if column in _READERS:
            name, read = _READERS[column]
            card.learn(name, read(cell))
    return card
