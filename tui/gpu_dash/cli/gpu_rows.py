"""The objects of ``gpu-dash gpus --json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gpu_dash.cli.gpu_servers import running_servers, server_of
from gpu_dash.gpu.kernel_event import KernelEvent
from gpu_dash.gpu.once import OneReading
from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.saved.reading import SavedOutput
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuInfo, GpuSample
from gpu_dash.model.text import strip_controls


def reading_rows(reading: OneReading) -> list[dict[str, Any]]:
    """One object per card with the columns of ``gpu.csv``; absent values are null."""
    anchor = ClockAnchor.now()
    samples = {sample.gpu: sample for sample in reading.samples}
    servers = running_servers()
    rows = []
    for info in reading.cards:
        when = {"time_s": 0.0, "time_utc": anchor.time_utc(anchor.monotonic)}
        sample = samples.get(info.gpu)
        row = {**when, **_row(info, sample or GpuSample(gpu=info.gpu))}
        if sample is None:
            row["throttle_reasons"] = None
        row["mig_uuids"] = list(info.mig_uuids)
        row["processes"] = _process_rows(reading, info.gpu, servers)
        row["error"] = reading.failures.get(info.gpu)
        row["event_sources"] = list(reading.source.event_sources)
        row["event_sources_missing"] = list(reading.source.event_sources_missing)
        rows.append(row)
    built: list[dict[str, Any]] = msgspec.to_builtins(rows)
    return built


def _process_rows(
    reading: OneReading, gpu: int, servers: Mapping[int, str]
) -> list[dict[str, Any]] | None:
    """The processes on a card; ``None`` where the driver does not tell."""
    if reading.processes is None:
        return None
    return [
        {
            "pid": process.pid,
            "name": process.name or None,
            "memory_bytes": process.memory_bytes,
            "server": server_of(process, servers),
        }
        for process in reading.processes.processes
        if process.gpu == gpu
    ]


def saved_rows(output: SavedOutput) -> list[dict[str, Any]]:
    rows: list[Any] = [_event_row(event) for event in output.events]
    rows += [_saved_row(card) for card in output.cards]
    built: list[dict[str, Any]] = msgspec.to_builtins(rows)
    return built


def _saved_row(card: SavedCard) -> dict[str, Any]:
    """The columns of a live reading, and what only this kind of output says."""
    row = {"time_s": None, "time_utc": None, **_row(card.info, card.sample), **card.other_facts}
    if "throttle_reasons" not in card.facts:
        row["throttle_reasons"] = None
    return row


def _event_row(event: KernelEvent) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "severity": event.severity.name.lower(),
        "xid": event.xid,
        "pci_bus_id": event.pci_bus_id or None,
        "subject": event.subject,
        "process": event.process or None,
        "pid": event.pid,
        "caused_by": event.caused_by,
        "count": event.count,
        "immediate_action": event.immediate_action or None,
        "follow_up_action": event.follow_up_action or None,
        "message": event.message,
    }


def _row(info: GpuInfo, sample: GpuSample) -> dict[str, Any]:
    values = {field: getattr(sample, field) for field in GpuSample.__struct_fields__}
    return {
        "gpu": sample.gpu,
        "uuid": info.uuid or None,
        "name": strip_controls(info.name),
        "pci_bus_id": info.pci_bus_id or None,
        "vendor": str(info.vendor),
        **{name: value for name, value in values.items() if name != "gpu"},
        "slowdown_temperature_celsius": info.slowdown_temperature_celsius,
        "shutdown_temperature_celsius": info.shutdown_temperature_celsius,
        "max_operating_temperature_celsius": info.max_operating_temperature_celsius,
        "power_limit_default_watts": info.power_limit_default_watts,
        "power_limit_min_watts": info.power_limit_min_watts,
        "power_limit_max_watts": info.power_limit_max_watts,
        "sm_clock_max_mhz": info.sm_clock_max_mhz,
        # Of one reading, the extremes are the reading itself.
        "temperature_max_celsius": sample.temperature_celsius,
        "power_max_watts": sample.power_watts,
        "sm_clock_min_mhz": sample.sm_clock_mhz,
        "sm_clock_mean_mhz": sample.sm_clock_mhz,
        "memory_clock_max_mhz": info.memory_clock_max_mhz,
        "memory_total_bytes": sample.memory_total_bytes or info.memory_total_bytes,
        "throttle_reasons": list(sample.throttle_reasons),
    }
