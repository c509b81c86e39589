"""Values as the words of a table, and the table itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from gpu_dash.model.text import strip_controls

NOT_OFFERED = "-"
"""Stands in a cell for which the card or the server has no value."""


def value(number: float | None, unit: str = "", *, digits: int = 0) -> str:
    """A number with its unit."""
    return NOT_OFFERED if number is None else f"{number:.{digits}f}{unit}"


def milliseconds(seconds: float | None) -> str:
    """A latency."""
    return NOT_OFFERED if seconds is None else f"{seconds * 1000:.1f} ms"


def load(concurrency: int | None, request_rate: float | None) -> str:
    """What a step asked for: ``8`` requests in flight, or ``2.5/s``."""
    return value(concurrency) if request_rate is None else f"{request_rate:g}/s"


def passed(verdict: bool | None) -> str:
    """The outcome of a verdict."""
    return {True: "passed", False: "FAILED", None: "not judged"}[verdict]


def cards(names: Sequence[str]) -> str:
    """The cards by name with their number: ``2 × NVIDIA H200``."""
    return ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))


def print_table(rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; what others wrote is stripped of controls."""
    cells = [[strip_controls(cell) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())
