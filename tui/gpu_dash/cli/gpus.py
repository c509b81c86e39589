"""``gpu-dash gpus``: one reading of every GPU, without an agent, or a saved one of another host."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TextIO

import click

from gpu_dash.cli.gpu_rows import reading_rows, saved_rows
from gpu_dash.cli.gpu_words import cards_table, event_table, reading_table
from gpu_dash.cli.options import Interval, print_json
from gpu_dash.gpu.once import read_once
from gpu_dash.gpu.saved.reading import read_saved
from gpu_dash.model.errors import GpuSourceError, UsageError


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
    help="Read a saved output instead: rocm-smi, amd-smi, nvidia-smi (-q, -x, -L, dmon, "
    "--query-gpu), a listing of amdgpu's sysfs files, or a kernel log.",
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
        reading = read_once(source)
        if as_json:
            print_json(reading_rows(reading))
        else:
            click.echo(reading_table(reading))
        for gpu, failure in reading.failures.items():
            click.echo(f"gpu-dash: GPU {gpu}: {failure}", err=True)
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
        print_json(saved_rows(output))
    elif output.events:
        click.echo(event_table(output.events))
    elif output.cards:
        infos = tuple(card.info for card in output.cards)
        click.echo(cards_table(infos, tuple(card.sample for card in output.cards)))
    for failure in output.failures if output.cards else ():
        click.echo(f"gpu-dash: {failure.error}: {failure.message}; {failure.action}", err=True)
    if output.failures and not output.cards:
        first = output.failures[0]
        where = f"GPU {first.pci_bus_id}: " if first.pci_bus_id else ""
        raise GpuSourceError(f"{where}{first.error}: {first.message}; {first.action}")
