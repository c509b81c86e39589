"""One CSV file of a session read back: its whole rows, as text or as values.

A last line without its end is left out, and so is a row with too few or too many cells; a file
that is not there has no rows.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gpu_dash.model.errors import RecordError
from gpu_dash.record.cells import text_of, value_of
from gpu_dash.record.columns import TEXT

Row = dict[str, str]
"""Cells as they stand in the file, by column."""
Record = dict[str, Any]
"""Values by column: numbers, flags and texts; ``None`` for an empty cell."""
Kind = TypeVar("Kind", bound=msgspec.Struct)

_TAIL_BYTES = 65536


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a file.

    Raises:
        RecordError: it cannot be read.
    """
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.reader(line for line in file if line.endswith("\n"))
            header = next(rows, None)
            if header is None:
                return
            for cells in rows:
                if len(cells) == len(header):
                    yield dict(zip(header, cells, strict=True))
    except FileNotFoundError:
        return
    except (OSError, csv.Error) as error:
        raise RecordError(f"{path}: {error}") from error


def record_of(row: Row) -> Record:
    """A row as values."""
    return {column: _value(column, cell) for column, cell in row.items()}


def struct_of(record: Record, kind: type[Kind]) -> Kind | None:
    """A record as a struct, whose own defaults stand for empty cells; ``None`` if it does not
    fit."""
    known = {
        name: record.get(name)
        for name, is_required in _fields(kind)
        if is_required or record.get(name) is not None
    }
    try:
        return msgspec.convert(known, kind)
    except msgspec.ValidationError:
        return None


def last_time_s(path: Path) -> float | None:
    """The time of the last row of a file whose first column it is, without reading the rest."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            lines = file.read().split(b"\n")[:-1]
    except OSError:
        return None
    for line in reversed(lines):
        moment = value_of(line.partition(b",")[0].decode(errors="replace"))
        if moment is not None:
            return moment
    return None


def _value(column: str, cell: str) -> Any:
    if column in TEXT:
        return text_of(cell) or None
    return value_of(cell)


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, bool], ...]:
    """The names of a struct's fields, and whether they have no default."""
    return tuple((field.name, field.required) for field in msgspec.structs.fields(kind))
