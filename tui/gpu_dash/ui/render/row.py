"""A row of the screen: runs of text, each with what it means.

Rows know roles, not colours, so they can be tested as text and drawn in any theme. Text that
comes from outside loses its control characters here, whoever forgot to take them out before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from rich.cells import cell_len, set_cell_size

from gpu_dash.model.text import strip_controls

ELLIPSIS = "…"


class Role(StrEnum):
    """What a piece of text means; the theme says how that looks."""

    PLAIN = "plain"
    DIM = "dim"
    """Labels, scales, and values that no longer arrive."""
    STRONG = "strong"
    GOOD = "good"
    WARN = "warn"
    ALARM = "alarm"
    SHOUT = "shout"
    """An alarm's own word: seen first, with or without colour."""
    ACCENT = "accent"
    SECOND = "second"
    KEY = "key"
    MATCH = "match"


SEEN_ON_BLANKS = frozenset({Role.SHOUT, Role.MATCH})
"""Roles that are reversed: a blank that takes one of them is a bar."""

Run = tuple[str, Role]


def text_width(text: str) -> int:
    """Cells that a text takes on the screen."""
    return len(text) if text.isascii() else cell_len(text)


def clean(text: str) -> str:
    """A text without anything that the terminal would obey or give no sure width.

    The joiners that make one emoji of several go too: terminals differ in what they take for it.
    """
    if text.isprintable():
        return text
    text = strip_controls(text.replace("\n", " ")).expandtabs(4)
    return "".join(character for character in text if character.isprintable())


class Row:
    """Builds one row from left to right."""

    __slots__ = ("_width", "runs")

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self.runs: list[Run] = []
        self._width = 0
        for text, role in runs:
            self.add(text, role)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self.runs == other.runs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Row({self.text!r})"

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    @property
    def width(self) -> int:
        """Cells taken so far."""
        return self._width

    @property
    def text(self) -> str:
        """The row without its roles."""
        return "".join(text for text, _ in self.runs)

    def add(self, text: str, role: Role = Role.PLAIN) -> Row:
        """Append a run; one with the role of the last is joined to it."""
        text = clean(text)
        if not text:
            return self
        self._width += text_width(text)
        if self.runs and self.runs[-1][1] is role:
            self.runs[-1] = (self.runs[-1][0] + text, role)
        else:
            self.runs.append((text, role))
        return self

    def extend(self, runs: Iterable[Run]) -> Row:
        """Append several runs."""
        for text, role in runs:
            self.add(text, role)
        return self

    def pad(self, column: int) -> Row:
        """Blank up to a column."""
        if column > self._width:
            blanks = " " * (column - self._width)
            if self.runs and self.runs[-1][1] is Role.DIM:
                self.runs[-1] = (self.runs[-1][0] + blanks, Role.DIM)
                self._width = column
            else:
                self.add(blanks)
        return self

    def fit(self, width: int) -> Row:
        """Exactly this wide: cut with an ellipsis, or padded with blanks."""
        if self._width > width:
            return self._cut(width)
        return self.pad(width)

    def right(self, runs: Iterable[Run], width: int) -> Row:
        """Put runs against the right edge; the left part gives way."""
        tail = Row(runs)
        if tail.width >= width:
            return self.fit(width)
        self.fit(max(0, width - tail.width))
        return self.extend(tail.runs)

    def dimmed(self) -> Row:
        """The same text as something that is no longer live."""
        return Row([(self.text, Role.DIM)])

    def _cut(self, width: int) -> Row:
        runs, self.runs, self._width = self.runs, [], 0
        room = width - 1
        for text, role in runs:
            size = text_width(text)
            if size <= room:
                self.add(text, role)
                room -= size
                continue
            kept = set_cell_size(text, room) if room > 0 else ""
            self.add(kept + (ELLIPSIS if width > 0 else ""), role)
            break
        return self
