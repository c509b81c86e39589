"""One CSV file of a session: its header, then rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from gpu_dash.record.append import AppendFile
from gpu_dash.record.cells import csv_line
from gpu_dash.record.columns import FILES


class Table:
    """Appends rows to one of :data:`~gpu_dash.record.columns.FILES`.

    A file that is there already keeps its own header: a session may go on under a newer gpu-dash
    that knows more columns.

    Args:
        folder: the session's.
        name: of the file.

    Raises:
        OSError: the file cannot be opened.
        RowsLost: its header cannot be written.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._file = AppendFile(folder / name)
        columns = FILES[name]
        self._order: list[int | None] | None = None
        if self._file.is_empty:
            self._file.append([csv_line(columns)])
            return
        header = _header(folder / name)
        if header != columns:
            places = {column: place for place, column in enumerate(columns)}
            self._order = [places.get(column) for column in header]

    def append(self, rows: Sequence[Sequence[str]]) -> None:
        """Write rows whose cells are in the order of the columns.

        Raises:
            RowsLost: some or all could not be written; the file is whole without them.
        """
        self._file.append([csv_line(self._arranged(row)) for row in rows])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _arranged(self, row: Sequence[str]) -> Sequence[str]:
        if self._order is None:
            return row
        return ["" if place is None else row[place] for place in self._order]


def _header(path: Path) -> tuple[str, ...]:
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return tuple(next(csv.reader(file), ()))
