"""Entries of the log as rows: a gutter with a sign and the kind, then the line as it is."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells

from gpu_dash.model.log import LogLine, Severity
from gpu_dash.ui.log_book import Entry, Gap, LogBook, LogFilter, kind_of, severity_of, text_of
from gpu_dash.ui.render.notice_lines import SIGNS
from gpu_dash.ui.render.row import Role, Row, clean

_THROTTLE_SIGN = "▲"


def log_row(entry: Entry, width: int, *, left: int, is_cursor: bool, search: str) -> Row:
    """One entry.

    Args:
        entry: what to show.
        width: cells.
        left: cells of the text that are scrolled out at the left.
        is_cursor: the keys act on this entry.
        search: text to mark; empty for none.
    """
    row = Row()
    kind = kind_of(entry)
    sign, role = _sign(entry, kind)
    row.add("›" if is_cursor else " ", Role.KEY).add(sign, role).add(" ")
    if kind:
        row.add(f"{kind} ", role)
    text = from_column(clean(text_of(entry)), left)
    body = Role.DIM if isinstance(entry, Gap) else Role.PLAIN
    _add_marked(row, text, search, body)
    return row.fit(width)


def _sign(entry: Entry, kind: str) -> tuple[str, Role]:
    severity = severity_of(entry)
    if not kind and severity is Severity.INFO:
        return " ", Role.PLAIN
    sign, role = SIGNS[severity]
    if kind.startswith("throttle_begin"):
        sign = _THROTTLE_SIGN
    if isinstance(entry, LogLine) and kind and not entry.root and role is Role.SHOUT:
        role = Role.ALARM
    return sign, role


def _add_marked(row: Row, text: str, search: str, role: Role) -> None:
    if not search:
        row.add(text, role)
        return
    lower, wanted = text.lower(), search.lower()
    if len(lower) != len(text):
        row.add(text, role)
        return
    start = 0
    while (found := lower.find(wanted, start)) >= 0:
        row.add(text[start:found], role).add(text[found : found + len(wanted)], Role.MATCH)
        start = found + len(wanted)
    row.add(text[start:], role)


def from_column(text: str, left: int) -> str:
    """A text without its first cells; half a wide character becomes a blank."""
    if left <= 0:
        return text
    if text.isascii():
        return text[left:]
    skipped = 0
    for index, character in enumerate(text):
        if skipped >= left:
            return " " * (skipped - left) + text[index:]
        skipped += cell_len(character)
    return ""


def log_title(book: LogBook, *, follows: bool, left: int, below: int, width: int) -> Row:
    """What the pane shows and whether it follows."""
    row = Row([("─ log ", Role.DIM)])
    if book.filter is not LogFilter.ALL:
        row.add(f"{filter_words(book)} ", Role.WARN)
    if book.text and book.filter is not LogFilter.TEXT:
        row.add(f"/{book.text} ", Role.ACCENT)
    row.add(f"{book.count:,} lines ", Role.DIM)
    if follows:
        row.add("following ", Role.DIM)
    else:
        row.add(f"{below:,} below, F follows ", Role.WARN)
    if left:
        row.add(f"from column {left} ", Role.DIM)
    if row.width < width:
        row.add("─" * (width - row.width), Role.DIM)
    return row.fit(width)


def filter_words(book: LogBook) -> str:
    """Which entries the pane shows."""
    if book.filter is LogFilter.ALL:
        return "all lines"
    return f"only {book.filter}" + (f" “{book.text}”" if book.filter is LogFilter.TEXT else "")


def entry_rows(text: str, checks: list[str], width: int) -> list[Row]:
    """An entry in full, wrapped, with what to check."""
    rows = [Row([(part, Role.PLAIN)]) for part in _wrapped(text, width)]
    for number, check in enumerate(checks, start=1):
        if number == 1:
            rows += [Row(), Row([("check", Role.STRONG)])]
        rows += [Row([(part, Role.PLAIN)]) for part in _wrapped(f"{number} {check}", width)]
    return rows


def _wrapped(text: str, width: int) -> list[str]:
    return list(chop_cells(clean(text), width)) or [""]
