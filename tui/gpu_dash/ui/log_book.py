"""What the log pane holds: lines of the server's log, and what the cards did, in one order.

Pure: it takes from the store at each frame and knows nothing of a screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpu_dash.agent.store import LogMark, Store
from gpu_dash.model.events import Finding, ThrottleBegan
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.ui.render.format import duration

HELD_LINES = 10_000


class LogFilter(StrEnum):
    """Which entries are shown."""

    ALL = "all"
    FINDINGS = "findings"
    ERRORS = "errors"
    TEXT = "text"


@dataclass(frozen=True)
class Gap:
    """Lines that came too fast to be sent here; the file has them."""

    first: int
    last: int

    @property
    def text(self) -> str:
        """What stands in their place."""
        return (
            f"{self.last - self.first + 1:,} lines came too fast for the screen "
            f"(lines {self.first:,} to {self.last:,} of the file)"
        )


Entry = LogLine | LogMark | Gap


class LogBook:
    """The newest entries, and which of them the filter lets through.

    Entries are numbered from 0 on and keep their number when older ones are forgotten, so a
    cursor or a filter stays on its entry.
    """

    def __init__(self, limit: int = HELD_LINES) -> None:
        self._limit = limit
        self._entries: list[Entry] = []
        self._first = 0
        self._store: Store | None = None
        self._session = ""
        self._lines_taken = 0
        self._marks_taken = 0
        self._last_line = 0
        self._filter = LogFilter.ALL
        self._text = ""
        self._shown: list[int] = []

    # -- filling -------------------------------------------------------------------------------

    def take(self, store: Store) -> None:
        """Add what the store has and this book has not."""
        if store is not self._store or store.session != self._session:
            self._restart(store)
        lines = self._new_lines(store)
        new_marks = store.log_marks_total - self._marks_taken
        marks = store.log_marks[-new_marks:] if new_marks > 0 else []
        self._marks_taken = store.log_marks_total
        if not lines and not marks:
            return
        before = self._first + len(self._entries)
        self._add(lines, marks)
        self._show_from(before)
        if len(self._entries) > self._limit * 5 // 4:
            self._forget(len(self._entries) - self._limit)

    def _restart(self, store: Store) -> None:
        self._store = store
        self._session = store.session
        self._first += len(self._entries)
        self._entries.clear()
        self._shown.clear()
        self._lines_taken = 0
        self._marks_taken = 0
        self._last_line = 0

    def _new_lines(self, store: Store) -> Sequence[LogLine]:
        new = store.log_lines_total - self._lines_taken
        self._lines_taken = store.log_lines_total
        if new <= 0:
            return ()
        held = store.log[-new:]
        # dropped lines count as taken but are not held: what is old is told by its number
        first = next(
            (index for index, line in enumerate(held) if line.number > self._last_line), len(held)
        )
        return held[first:] if first else held

    def _add(self, lines: Sequence[LogLine], marks: Sequence[LogMark]) -> None:
        if not marks and lines and self._is_whole(lines):
            self._entries.extend(lines)
            self._last_line = lines[-1].number
            return
        waiting = list(marks)
        for line in lines:
            while waiting and waiting[0].after_line < line.number:
                self._entries.append(waiting.pop(0))
            if self._last_line and line.number > self._last_line + 1:
                self._entries.append(Gap(self._last_line + 1, line.number - 1))
            self._entries.append(line)
            self._last_line = line.number
        self._entries.extend(waiting)

    def _is_whole(self, lines: Sequence[LogLine]) -> bool:
        follows = not self._last_line or lines[0].number == self._last_line + 1
        return follows and lines[-1].number - lines[0].number + 1 == len(lines)

    def _forget(self, count: int) -> None:
        del self._entries[:count]
        self._first += count
        kept = next(
            (index for index, number in enumerate(self._shown) if number >= self._first),
            len(self._shown),
        )
        del self._shown[:kept]

    # -- reading -------------------------------------------------------------------------------

    @property
    def filter(self) -> LogFilter:
        """Which entries are shown."""
        return self._filter

    @property
    def text(self) -> str:
        """What the text filter and the search look for."""
        return self._text

    def set_filter(self, which: LogFilter, text: str) -> None:
        """Show other entries."""
        self._filter = which
        self._text = text
        self._shown.clear()
        self._show_from(self._first)

    @property
    def count(self) -> int:
        """How many entries are shown."""
        return len(self._entries) if self._filter is LogFilter.ALL else len(self._shown)

    def at(self, index: int) -> Entry:
        """One of the shown entries, from the top."""
        return self._entries[self._position(index)]

    def number_at(self, index: int) -> int:
        """The lasting number of a shown entry."""
        return self._first + self._position(index)

    def index_of(self, number: int) -> int:
        """Where an entry is shown, or the nearest one after it."""
        if self._filter is LogFilter.ALL:
            return max(0, min(number - self._first, self.count - 1))
        index = next((i for i, shown in enumerate(self._shown) if shown >= number), self.count - 1)
        return max(0, index)

    def find(self, start: int, step: int) -> int | None:
        """The next shown entry with the text, from ``start`` on, in either direction."""
        index = start
        while self._text and 0 <= index < self.count:
            if self._has_text(self.at(index)):
                return index
            index += step
        return None

    def find_cause(self, start: int) -> int | None:
        """The newest shown entry at or before ``start`` that asks for a look, causes before what
        followed from them."""
        marked = None
        for index in range(min(start, self.count - 1), -1, -1):
            entry = self.at(index)
            if is_cause(entry):
                return index
            if marked is None and is_finding(entry) and severity_of(entry) is not Severity.INFO:
                marked = index
        return marked

    def _position(self, index: int) -> int:
        return index if self._filter is LogFilter.ALL else self._shown[index] - self._first

    def _show_from(self, number: int) -> None:
        if self._filter is LogFilter.ALL:
            return
        for position in range(number - self._first, len(self._entries)):
            if self._passes(self._entries[position]):
                self._shown.append(self._first + position)

    def _passes(self, entry: Entry) -> bool:
        if self._filter is LogFilter.FINDINGS:
            return is_finding(entry)
        if self._filter is LogFilter.ERRORS:
            return severity_of(entry) in (Severity.ERROR, Severity.CRITICAL)
        return self._has_text(entry)

    def _has_text(self, entry: Entry) -> bool:
        return self._text.lower() in f"{kind_of(entry)} {text_of(entry)}".lower()


def is_finding(entry: Entry) -> bool:
    """Whether an entry is marked in the gutter."""
    return isinstance(entry, LogMark) or (isinstance(entry, LogLine) and bool(entry.kind))


def is_cause(entry: Entry) -> bool:
    """Whether an entry is where a person should begin to look."""
    if isinstance(entry, LogLine):
        return entry.root and severity_of(entry) in (Severity.ERROR, Severity.CRITICAL)
    return isinstance(entry, LogMark) and severity_of(entry) in (Severity.ERROR, Severity.CRITICAL)


def severity_of(entry: Entry) -> Severity:
    """How soon a person should look at an entry."""
    if isinstance(entry, LogLine):
        return entry.severity
    if isinstance(entry, Gap):
        return Severity.INFO
    event = entry.event
    if isinstance(event, Finding):
        return event.severity
    if isinstance(event, ThrottleBegan):
        return Severity.ERROR if event.kind.is_alarm else Severity.WARNING
    return Severity.INFO


def kind_of(entry: Entry) -> str:
    """The word in front of a marked entry; empty for most lines."""
    if isinstance(entry, LogLine):
        return entry.kind
    if isinstance(entry, Gap):
        return ""
    event = entry.event
    if isinstance(event, Finding):
        return event.kind
    return "throttle_begin" if isinstance(event, ThrottleBegan) else "throttle_end"


def text_of(entry: Entry) -> str:
    """An entry as one line, without its kind."""
    if isinstance(entry, LogMark):
        return _mark_text(entry)
    return entry.text


def _mark_text(mark: LogMark) -> str:
    event = mark.event
    if isinstance(event, Finding):
        return f"{event.subject} {event.message}".strip()
    if isinstance(event, ThrottleBegan):
        heat, clock = event.temperature_celsius, event.sm_clock_mhz
        words = [f"gpu:{event.gpu} {event.kind.upper()}", "+".join(event.reasons)]
    else:
        heat, clock = event.peak_temperature_celsius, event.lowest_sm_clock_mhz
        lasted = duration(event.at - event.began_at)
        words = [f"gpu:{event.gpu} {event.kind.upper()} over after {lasted}"]
    if heat is not None:
        words.append(f"{heat:.0f} °C")
    if clock is not None:
        words.append(f"{clock:.0f} MHz")
    return "  ".join(word for word in words if word)


def checks_of(entry: Entry, findings: Sequence[Finding]) -> list[str]:
    """What to look at, in order, for an entry that a finding belongs to."""
    if isinstance(entry, Gap):
        return []
    if isinstance(entry, LogMark):
        belonging = [entry.event] if isinstance(entry.event, Finding) else []
    else:
        belonging = [finding for finding in findings if finding.line == entry.number][-1:]
    return [
        check for finding in belonging for check in (finding.first_check, *finding.checks) if check
    ]
