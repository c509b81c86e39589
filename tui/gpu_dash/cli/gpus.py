"""``gpu-dash gpus``: one reading of every GPU, without an agent, or a saved one of another host."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TextIO

import click
import msgspec

from gpu_dash.cli.options import Interval, print_json
from gpu_dash.gpu.kernel_event import KernelEvent
from gpu_dash.gpu.once import read_once
from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.saved.reading import SavedOutput, read_saved
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.errors import GpuSourceError, UsageError
from gpu_dash.model.events import GpuSourceChanged
from gpu_dash.model.gpu import GpuInfo, GpuSample
from gpu_dash.model.text import strip_controls

_HEADER = ("GPU", "NAME", "TEMP", "LEFT", "POWER", "SM CLOCK", "UTIL", "MEMORY", "THROTTLE")


@click.command("gpus")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, named as in gpu.csv.")
@click.option("--watch", type=Interval(), metavar="SECONDS", help="Read again and again.")
@click.option(
    "--gpu",
    "source",
    type=click.Choice(["auto", "nvml", "amd", "sim"]),
    default="auto",
    help="Source of the readings.",
)
@click.option(
    "--input",
    "saved",
    type=click.File("r", errors="replace"),
    metavar="FILE|-",
    help="Read a saved output instead: rocm-smi, amd-smi, nvidia-smi (-q, -x, --query-gpu), "
    "a listing of amdgpu's sysfs files, or a kernel log.",
)
@click.option(
    "--columns",
    metavar="NAMES",
    help="What was queried, for a saved CSV of nvidia-smi without a header line.",
)
def command(
    as_json: bool,
    watch: float | None,
    source: str,
    saved: TextIO | None,
    columns: str | None,
) -> None:
    """One reading of every GPU: temperature, headroom, power, clock, throttle reasons."""
    if saved is not None:
        if watch is not None:
            raise UsageError("--watch: a saved output does not change; leave --watch or --input")
        _show_saved(saved, columns.split(",") if columns else (), as_json=as_json)
        return
    due = time.monotonic()
    while True:
        changed, samples = read_once(source)
        if as_json:
            print_json(_rows(changed, samples))
        else:
            click.echo(_table(changed, samples))
        if watch is None:
            return
        due = max(due + watch, time.monotonic())
        time.sleep(due - time.monotonic())


def _show_saved(saved: TextIO, columns: Sequence[str], *, as_json: bool) -> None:
    """Print a saved output.

    Raises:
        UsageError: nothing in it is known.
        GpuSourceError: the tool could read no card, and says why.
    """
    output = read_saved(saved.read(), columns)
    if output.is_empty:
        raise UsageError(
            f"{saved.name}: no output of rocm-smi, amd-smi or nvidia-smi, no listing of sysfs and "
            "no GPU line of a kernel log was found in it"
        )
    if output.remark:
        click.echo(f"gpu-dash: {saved.name}: {output.remark}", err=True)
    if as_json:
        print_json(_saved_rows(output))
    elif output.events:
        click.echo(_event_table(output.events))
    elif output.cards:
        infos = tuple(card.info for card in output.cards)
        click.echo(_aligned(_cells(infos, tuple(card.sample for card in output.cards))))
    for failure in output.failures if output.cards else ():
        click.echo(f"gpu-dash: {failure.error}: {failure.message}; {failure.action}", err=True)
    if output.failures and not output.cards:
        first = output.failures[0]
        where = f"GPU {first.pci_bus_id}: " if first.pci_bus_id else ""
        raise GpuSourceError(f"{where}{first.error}: {first.message}; {first.action}")


def _rows(changed: GpuSourceChanged, samples: tuple[GpuSample, ...]) -> list[dict[str, Any]]:
    """One object per card with the columns of ``gpu.csv``; absent values are null."""
    anchor = ClockAnchor.now()
    infos = {info.gpu: info for info in changed.gpus}
    rows = []
    for sample in samples:
        info = infos.get(sample.gpu, GpuInfo(gpu=sample.gpu, name=""))
        when = {"time_s": 0.0, "time_utc": anchor.time_utc(anchor.monotonic)}
        rows.append({**when, **_row(info, sample)})
    built: list[dict[str, Any]] = msgspec.to_builtins(rows)
    return built


def _saved_rows(output: SavedOutput) -> list[dict[str, Any]]:
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
        "memory_clock_max_mhz": info.memory_clock_max_mhz,
        "memory_total_bytes": sample.memory_total_bytes or info.memory_total_bytes,
        "throttle_reasons": list(sample.throttle_reasons),
    }


def _table(changed: GpuSourceChanged, samples: tuple[GpuSample, ...]) -> str:
    known = {info.gpu: info for info in changed.gpus}
    infos = tuple(known.get(sample.gpu, GpuInfo(gpu=sample.gpu, name="")) for sample in samples)
    return _aligned(_cells(infos, samples))


def _event_table(events: Sequence[KernelEvent]) -> str:
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
                _value(sample.utilization_percent, "%"),
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
