"""The binary table ``gpu_metrics`` of the amdgpu driver, revisions 1.0 to 1.8. Pure.

Each revision has its own layout, named by the table's header. A revision that is not known here
is declined by name: its bytes would decode to plausible nonsense. All ones mean "not supported".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

HEADER = struct.Struct("<HBB")
Value = int | tuple[int | None, ...] | None


class UnknownRevision(Exception):
    """The table has a layout that is not known here, or is cut short.

    Args:
        problem: in words.
        revision: the layout by name; empty: not even that is there.
        size: what the table says of its own size.
    """

    def __init__(self, problem: str, revision: str = "", size: int = 0) -> None:
        super().__init__(problem)
        self.revision = revision
        self.size = size


@dataclass(frozen=True, slots=True)
class GpuMetrics:
    """A decoded table: values by the kernel's names, ``None`` where the chip has none."""

    format: str
    """As the kernel names it: ``v1_3``."""
    size: int
    values: Mapping[str, Value]

    def number(self, name: str) -> int | None:
        """A value; of several, as of the clocks of several dies, the first that is known."""
        value = self.values.get(name)
        if isinstance(value, tuple):
            return next((one for one in value if one is not None), None)
        return value


_1_0 = """
Q system_clock_counter, H temperature_edge, H temperature_hotspot, H temperature_mem,
H temperature_vrgfx, H temperature_vrsoc, H temperature_vrmem,
H average_gfx_activity, H average_umc_activity, H average_mm_activity,
H average_socket_power, I energy_accumulator,
H average_gfxclk_frequency, H average_socclk_frequency, H average_uclk_frequency,
H average_vclk0_frequency, H average_dclk0_frequency, H average_vclk1_frequency,
H average_dclk1_frequency,
H current_gfxclk, H current_socclk, H current_uclk, H current_vclk0, H current_dclk0,
H current_vclk1, H current_dclk1,
I throttle_status, H current_fan_speed, B pcie_link_width, B pcie_link_speed
"""
_HEAD_OF_1 = """
H temperature_edge, H temperature_hotspot, H temperature_mem, H temperature_vrgfx,
H temperature_vrsoc, H temperature_vrmem,
H average_gfx_activity, H average_umc_activity, H average_mm_activity,
H average_socket_power, Q energy_accumulator, Q system_clock_counter,
H average_gfxclk_frequency, H average_socclk_frequency, H average_uclk_frequency,
H average_vclk0_frequency, H average_dclk0_frequency, H average_vclk1_frequency,
H average_dclk1_frequency,
H current_gfxclk, H current_socclk, H current_uclk, H current_vclk0, H current_dclk0,
H current_vclk1, H current_dclk1,
I throttle_status, H current_fan_speed, H pcie_link_width, H pcie_link_speed, H _,
I gfx_activity_acc, I mem_activity_acc, 4H temperature_hbm
"""
_1_2 = f"{_HEAD_OF_1}, Q firmware_timestamp"
_1_3 = f"{_1_2}, H voltage_soc, H voltage_gfx, H voltage_mem, H _, Q indep_throttle_status"

_HEAD_OF_SOCKET = """
H temperature_hotspot, H temperature_mem, H temperature_vrsoc, H curr_socket_power,
H average_gfx_activity, H average_umc_activity
"""
_RESIDENCIES = """
I accumulation_counter, I prochot_residency_acc, I ppt_residency_acc,
I socket_thm_residency_acc, I vr_thm_residency_acc, I hbm_thm_residency_acc
"""
_LINKS = """
H pcie_link_width, H pcie_link_speed, H xgmi_link_width, H xgmi_link_speed,
I gfx_activity_acc, I mem_activity_acc, Q pcie_bandwidth_acc, Q pcie_bandwidth_inst,
Q pcie_l0_to_recov_count_acc, Q pcie_replay_count_acc, Q pcie_replay_rover_count_acc
"""
_NAKS = "I pcie_nak_sent_count_acc, I pcie_nak_rcvd_count_acc"
_XGMI = "8Q xgmi_read_data_acc, 8Q xgmi_write_data_acc"
_CLOCKS = """
Q firmware_timestamp, 8H current_gfxclk, 4H current_socclk, 4H current_vclk0,
4H current_dclk0, H current_uclk
"""
_TIMES = "Q energy_accumulator, Q system_clock_counter"
_STATUS = "I throttle_status, I gfxclk_lock_status"
_1_4 = f"{_HEAD_OF_SOCKET}, 4H vcn_activity, {_TIMES}, {_STATUS}, {_LINKS}, {_XGMI}, {_CLOCKS}"
_1_5 = (
    f"{_HEAD_OF_SOCKET}, 4H vcn_activity, 32H jpeg_activity, {_TIMES}, {_STATUS}, {_LINKS}, "
    f"{_NAKS}, {_XGMI}, {_CLOCKS}"
)
_1_6 = (
    f"{_HEAD_OF_SOCKET}, {_TIMES}, {_RESIDENCIES}, I gfxclk_lock_status, {_LINKS}, {_NAKS}, "
    f"{_XGMI}, {_CLOCKS}"
)
_1_7 = (
    f"{_HEAD_OF_SOCKET}, Q mem_max_bandwidth, {_TIMES}, {_RESIDENCIES}, I gfxclk_lock_status, "
    f"{_LINKS}, {_NAKS}, {_XGMI}, 8H xgmi_link_status, H _, {_CLOCKS}"
)


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    code: str
    count: int
    offset: int

    def read(self, table: bytes) -> Value:
        size = struct.calcsize(self.code)
        missing = (1 << 8 * size) - 1
        numbers = struct.unpack_from(f"<{self.count}{self.code}", table, self.offset)
        known = tuple(None if number == missing else number for number in numbers)
        return known[0] if self.count == 1 else known


def _fields(layout: str) -> Iterator[_Field]:
    """The fields of a C structure, each aligned to its own size."""
    offset = HEADER.size
    for part in layout.split(","):
        kind, name = part.split()
        code, count = kind[-1], int(kind[:-1] or 1)
        size = struct.calcsize(code)
        offset += -offset % size
        if name != "_":
            yield _Field(name, code, count, offset)
        offset += size * count


_LAYOUTS = {
    (1, 0): tuple(_fields(_1_0)),
    (1, 1): tuple(_fields(_HEAD_OF_1)),
    (1, 2): tuple(_fields(_1_2)),
    (1, 3): tuple(_fields(_1_3)),
    (1, 4): tuple(_fields(_1_4)),
    (1, 5): tuple(_fields(_1_5)),
    (1, 6): tuple(_fields(_1_6)),
    (1, 7): tuple(_fields(_1_7)),
    (1, 8): tuple(_fields(_1_7)),  # differs behind the fields that are read here
}


def decode_gpu_metrics(table: bytes) -> GpuMetrics:
    """Decode a table.

    Raises:
        UnknownRevision: its layout is not known here, or the table is cut short.
    """
    if len(table) < HEADER.size:
        raise UnknownRevision(f"gpu_metrics of {len(table)} bytes has no header")
    size, major, minor = HEADER.unpack_from(table)
    revision = f"v{major}_{minor}"
    fields = _LAYOUTS.get((major, minor))
    if fields is None:
        raise UnknownRevision(f"gpu_metrics {revision} is not known here", revision, size)
    last = fields[-1]
    least = last.offset + last.count * struct.calcsize(last.code)
    if len(table) < size or size < least:
        raise UnknownRevision(
            f"gpu_metrics {revision} is cut short: {len(table)} bytes, {max(size, least)} expected",
            revision,
            size,
        )
    return GpuMetrics(revision, size, {field.name: field.read(table) for field in fields})
