"""``gpu-dash gpus``: one reading of every GPU, without an agent."""

from __future__ import annotations

import time
from typing import Any

import click
import msgspec

from gpu_dash.cli.options import Duration, print_json
from gpu_dash.gpu.once import read_once
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.events import GpuSourceChanged
from gpu_dash.model.gpu import GpuInfo, GpuSample
from gpu_dash.model.text import strip_controls

_HEADER = ("GPU", "NAME", "TEMP", "LEFT", "POWER", "SM CLOCK", "UTIL", "MEMORY", "THROTTLE")


@click.command("gpus")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, named as in gpu.csv.")
@click.option("--watch", type=Duration(), metavar="DURATION", help="Read again and again.")
@click.option(
    "--gpu",
    "source",
    type=click.Choice(["auto", "nvml", "amd", "sim"]),
    default="auto",
    help="Source of the readings.",
)
def command(as_json: bool, watch: float | None, source: str) -> None:
    """One reading of every GPU: temperature, headroom, power, clock, throttle reasons."""
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


def _rows(changed: GpuSourceChanged, samples: tuple[GpuSample, ...]) -> list[dict[str, Any]]:
    """One object per card with the columns of ``gpu.csv``; absent values are null."""
    anchor = ClockAnchor.now()
    infos = {info.gpu: info for info in changed.gpus}
    rows = []
    for sample in samples:
        info = infos.get(sample.gpu, GpuInfo(gpu=sample.gpu, name=""))
        values = {field: getattr(sample, field) for field in GpuSample.__struct_fields__}
        rows.append(
            {
                "time_s": 0.0,
                "time_utc": anchor.time_utc(anchor.monotonic),
                "gpu": sample.gpu,
                "uuid": info.uuid or None,
                "name": strip_controls(info.name),
                "pci_bus_id": info.pci_bus_id or None,
                "vendor": str(info.vendor),
                **{name: value for name, value in values.items() if name != "gpu"},
                "slowdown_temperature_celsius": info.slowdown_temperature_celsius,
                "shutdown_temperature_celsius": info.shutdown_temperature_celsius,
                "max_operating_temperature_celsius": info.max_operating_temperature_celsius,
                "sm_clock_max_mhz": info.sm_clock_max_mhz,
                "memory_clock_max_mhz": info.memory_clock_max_mhz,
                "memory_total_bytes": sample.memory_total_bytes or info.memory_total_bytes,
                "throttle_reasons": list(sample.throttle_reasons),
            }
        )
    built: list[dict[str, Any]] = msgspec.to_builtins(rows)
    return built


def _table(changed: GpuSourceChanged, samples: tuple[GpuSample, ...]) -> str:
    infos = {info.gpu: info for info in changed.gpus}
    rows: list[tuple[str, ...]] = [_HEADER]
    for sample in samples:
        info = infos.get(sample.gpu, GpuInfo(gpu=sample.gpu, name=""))
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
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
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
