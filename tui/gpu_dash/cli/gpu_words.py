"""The tables of ``gpu-dash gpus``."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_dash.cli.gpu_servers import running_servers, server_of
from gpu_dash.gpu.fault_sources import fault_source_lines
from gpu_dash.gpu.kernel_event import KernelEvent
from gpu_dash.gpu.once import OneReading
from gpu_dash.model.gpu import GpuInfo, GpuSample
from gpu_dash.model.text import strip_controls

_HEADER = ("GPU", "NAME", "TEMP", "LEFT", "POWER", "SM CLOCK", "UTIL", "MEMORY", "THROTTLE")
NOT_TOLD = "n/a (MIG)"
"""A card in MIG mode does not tell its utilisation."""


def reading_table(reading: OneReading) -> str:
    """The cards, then who computes on them, then where faults are heard."""
    samples = {sample.gpu: sample for sample in reading.samples}
    known = [samples.get(info.gpu, GpuSample(gpu=info.gpu)) for info in reading.cards]
    parts = [_aligned(_cells(reading.cards, known))]
    processes = _process_cells(reading)
    if len(processes) > 1:
        parts.append(_aligned(processes))
    notes = [reading.source.detail] if reading.source.detail else []
    if reading.processes is not None and reading.processes.detail:
        notes.append(f"processes: {reading.processes.detail}")
    notes += fault_source_lines(reading.source.event_sources, reading.source.event_sources_missing)
    if notes and reading.source.source != "sim":
        parts.append("\n".join(notes))
    return "\n\n".join(parts)


def cards_table(infos: Sequence[GpuInfo], samples: Sequence[GpuSample]) -> str:
    """The cards of a saved output."""
    return _aligned(_cells(infos, samples))


def _process_cells(reading: OneReading) -> list[tuple[str, ...]]:
    servers = running_servers()
    rows: list[tuple[str, ...]] = [("GPU", "PID", "MEMORY", "SERVER", "PROCESS")]
    rows += [
        (
            str(process.gpu),
            str(process.pid),
            "-" if process.memory_bytes is None else f"{process.memory_bytes / 2**30:.1f} GiB",
            server_of(process, servers) or "-",
            strip_controls(process.name) or "(not seen here)",
        )
        for process in (reading.processes.processes if reading.processes is not None else ())
    ]
    return rows


def event_table(events: Sequence[KernelEvent]) -> str:
    """The events of a kernel log."""
    rows: list[tuple[str, ...]] = [("PCI", "KIND", "XID", "SUBJECT", "ACTION")]
    rows += [
        (
            event.pci_bus_id or "-",
            event.kind,
            "-" if event.xid is None else str(event.xid),
            event.subject,
            event.immediate_action or "-",
        )
        for event in events
    ]
    return _aligned(rows)


def _cells(infos: Sequence[GpuInfo], samples: Sequence[GpuSample]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [_HEADER]
    for info, sample in zip(infos, samples, strict=True):
        total = sample.memory_total_bytes or info.memory_total_bytes
        rows.append(
            (
                str(sample.gpu),
                strip_controls(info.name),
                _value(sample.temperature_celsius, "°C"),
                _value(sample.headroom_celsius, "°C"),
                _of(sample.power_watts, sample.power_limit_watts, "W"),
                _of(sample.sm_clock_mhz, info.sm_clock_max_mhz, "MHz"),
                NOT_TOLD if info.mig_uuids else _value(sample.utilization_percent, "%"),
                _of(_gib(sample.memory_used_bytes), _gib(total), "GiB"),
                "+".join(sample.throttle_reasons) or "-",
            )
        )
    return rows


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _value(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.0f} {unit}"


def _of(value: float | None, total: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{value:.0f} {unit}" if total is None else f"{value:.0f}/{total:.0f} {unit}"


def _gib(size: int | None) -> float | None:
    return None if size is None else size / 2**30
