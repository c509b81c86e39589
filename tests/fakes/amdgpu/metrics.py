"""Packs ``gpu_metrics`` tables by byte offsets, independent of the decoder's layouts."""

from __future__ import annotations

import struct

OFFSETS: dict[str, tuple[int, dict[str, tuple[str, int]]]] = {
    # revision → size, and the format and offset of each field
    "v1_3": (
        120,
        {
            "temperature_edge": ("H", 4),
            "temperature_hotspot": ("H", 6),
            "temperature_mem": ("H", 8),
            "average_gfx_activity": ("H", 16),
            "average_umc_activity": ("H", 18),
            "average_socket_power": ("H", 22),
            "energy_accumulator": ("Q", 24),
            "current_gfxclk": ("H", 54),
            "current_uclk": ("H", 58),
            "throttle_status": ("I", 68),
            "indep_throttle_status": ("Q", 112),
        },
    ),
    "v1_4": (
        288,
        {
            "temperature_hotspot": ("H", 4),
            "temperature_mem": ("H", 6),
            "curr_socket_power": ("H", 10),
            "average_gfx_activity": ("H", 12),
            "throttle_status": ("I", 40),
            "current_gfxclk": ("H", 240),
        },
    ),
    "v1_6": (
        1664,
        {
            "temperature_hotspot": ("H", 4),
            "temperature_mem": ("H", 6),
            "curr_socket_power": ("H", 10),
            "average_gfx_activity": ("H", 12),
            "energy_accumulator": ("Q", 16),
            "accumulation_counter": ("I", 32),
            "prochot_residency_acc": ("I", 36),
            "ppt_residency_acc": ("I", 40),
            "socket_thm_residency_acc": ("I", 44),
            "vr_thm_residency_acc": ("I", 48),
            "hbm_thm_residency_acc": ("I", 52),
            "current_gfxclk": ("H", 264),
        },
    ),
}


def pack(revision: str, **values: int) -> bytes:
    """A table of a revision; what is not given is all ones, as the driver writes "missing"."""
    size, offsets = OFFSETS[revision]
    table = bytearray(b"\xff" * size)
    major, minor = revision.removeprefix("v").split("_")
    struct.pack_into("<HBB", table, 0, size, int(major), int(minor))
    for name, value in values.items():
        kind, offset = offsets[name]
        struct.pack_into(f"<{kind}", table, offset, value)
    return bytes(table)
