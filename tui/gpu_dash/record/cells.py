"""One cell of a CSV file, both ways.

An empty cell means: not offered, or not known. A text from outside loses its control sequences
and stays on one line, and never starts a formula when the file is opened in a spreadsheet: one
that would gets a ``'`` in front, which the way back takes off. Numbers are our own and are
written plainly.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence

from gpu_dash.model.text import one_line

_FORMULA = re.compile("'*[=+\\-@\t\r＝＋－＠]")


def text_cell(text: str) -> str:
    """A text from outside."""
    text = one_line(text)
    return f"'{text}" if _FORMULA.match(text) else text


def text_of(cell: str) -> str:
    """The text that :func:`text_cell` wrote."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def number_cell(value: float | None, digits: int = 3) -> str:
    """A number with at most that many decimals; what is no number is empty."""
    if value is None or not math.isfinite(value):
        return ""
    if isinstance(value, int):
        return str(value)
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def flag_cell(value: bool) -> str:
    """``true`` or ``false``."""
    return "true" if value else "false"


def value_of(cell: str) -> float | int | bool | None:
    """The number or flag in a cell; ``None`` if it is empty or holds neither."""
    if cell in ("true", "false"):
        return cell == "true"
    try:
        return int(cell)
    except ValueError:
        pass
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def csv_line(cells: Sequence[str]) -> bytes:
    """Cells as one line of the file, with its end."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode()
