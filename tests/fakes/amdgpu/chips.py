"""What the amdgpu driver shows of each chip, as far as it is known from its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """Which files a chip has."""

    device_id: str
    temperatures: tuple[str, ...]
    power_file: str
    power_cap_watts: int
    sclk_mhz: tuple[int, ...]
    mclk_mhz: tuple[int, ...]
    vram_bytes: int
    metrics: str
    """Revision of ``gpu_metrics``."""
    has_voltage: bool = True
    has_edge_limit: bool = True


MI100 = Chip(
    "0x738c", ("edge", "junction", "mem"), "power1_average", 300,
    (300, 1502), (167, 1200), 34342961152, "v1_3",
)  # fmt: skip
MI210 = Chip(
    "0x740f", ("edge", "junction", "mem"), "power1_average", 300,
    (500, 1700), (400, 1600), 68702699520, "v1_3",
)  # fmt: skip
MI250 = Chip(
    "0x740c", ("edge", "junction", "mem"), "power1_average", 560,
    (500, 1700), (400, 1600), 68702699520, "v1_3",
)  # fmt: skip
MI300X = Chip(
    "0x74a1", ("junction", "mem"), "power1_input", 750,
    (132, 2100), (900, 1300), 206141652992, "v1_6",
    has_voltage=False,
)  # fmt: skip
