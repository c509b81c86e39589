"""Records of several lines and tracebacks, put together again per process.

Several processes write into one log line by line, so what belongs together is found by who wrote
it. The line that matters in a traceback is its last one, the exception; the frames above tell
where it happened. An error that no rule knows is remembered until its record is over, because
the rule may fit a later line of it: the last exception of a chain, the detail under it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field

from gpu_dash.logs.grammar import Level, Record
from gpu_dash.logs.incident import OpenFinding

FRAMES = 400
"""Lines kept of one traceback."""
MOST_WRITERS = 256
PATIENCE_LINES = 40
"""An unknown error is reported when this many lines of any process followed it, at the latest."""
LONGEST_TRACEBACK = 2000
"""As long as its traceback goes on, and no longer than this."""
NEARBY_LINES = 5
"""Raw text this close below an exception may be its detail."""

_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = (
    "The above exception was the direct cause of",
    "During handling of the above exception, another exception occurred",
)
_IGNORED = "Exception ignored in"
"""How Python reports what happened while it cleaned up; the traceback below it changes nothing."""
_GROUP_BARS = tuple(" " * depth + sign for depth in (2, 4, 6, 8) for sign in "|+")
_GROUP_BAR = re.compile(r" +(?:\| |\+-[+-]*(?: \d+ -+)?|\+ )")
_GROUP = re.compile(r"(?:Base)?ExceptionGroup: ")
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*|gaierror|timeout|error)(?:: |:$|$)")
_LONE_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: |:$|$)")


@dataclass(slots=True)
class Unknown:
    """An error that no rule knew so far."""

    number: int
    text: str
    record: Record
    is_exception: bool
    due: int
    """Number of the line at which waiting ends."""


@dataclass(slots=True)
class Writer:
    """What one process is in the middle of saying."""

    head: str = ""
    """What stands in front of each line of the record under way."""
    is_new: bool = False
    """The record under way has said nothing yet."""
    frames: list[str] = field(default_factory=list)
    in_traceback: bool = False
    is_chained: bool = False
    """The next traceback belongs to the last one."""
    is_known: bool = False
    """A rule knew an exception of this chain."""
    unknown: Unknown | None = None
    heading: OpenFinding | None = None
    """What was found in the first line of the record under way."""


class Tracebacks:
    """Knows what each process is in the middle of saying.

    For each line of a process that reports a failure call :meth:`statement`, and when that gives
    one, :meth:`known` or :meth:`not_known`.
    """

    def __init__(self) -> None:
        self._writers: OrderedDict[tuple[str, int | None, int | None], Writer] = OrderedDict()
        self._over: list[Unknown] = []
        self.next_due: int | None = None
        """Number of the line at which :meth:`expire` has something to do."""

    def statement(self, record: Record) -> tuple[Writer, str | None]:
        """Whose line it is, and what it states; ``None`` for the body of a record: frames,
        source lines, headings, which are no failure by themselves."""
        writer = self._writer(record)
        if record.level >= Level.ERROR and record.head != writer.head:
            self._end(writer)
            writer.head = record.head
            writer.is_new = True
        message = record.message
        if message.startswith(_GROUP_BARS) and (bar := _GROUP_BAR.match(message)):
            message = message[bar.end() :]
        if message.startswith("  ") and self._is_body(writer, record, message):
            if len(writer.frames) < FRAMES:
                writer.frames.append(message)
            return writer, None
        if message.endswith(_TRACEBACK):
            # Its heading may quote the exception; the exception itself comes below.
            self._begin(writer)
            return writer, None
        if message.startswith(_CHAINED) or _GROUP.match(message):
            writer.is_chained, writer.in_traceback = True, False
            return writer, None
        if message.startswith(_IGNORED):
            writer.is_known = writer.is_chained = True
            return writer, None
        return writer, message or None

    def known(self, writer: Writer, record: Record, number: int) -> None:
        """A rule fits the statement."""
        unknown = writer.unknown
        is_of_record = (
            writer.in_traceback
            or record.level >= Level.ERROR
            or (unknown is not None and number - unknown.number <= NEARBY_LINES)
        )
        writer.in_traceback = writer.is_new = False
        writer.is_known = True
        if is_of_record:
            writer.unknown = None

    def not_known(
        self, writer: Writer, record: Record, number: int, text: str, statement: str
    ) -> None:
        """No rule fits the statement."""
        is_new, writer.is_new = writer.is_new, False
        if writer.in_traceback:
            if _EXCEPTION.match(statement) is None:
                return  # another process' text in between
            writer.in_traceback = False
            if not writer.is_known and (writer.unknown is None or not writer.unknown.is_exception):
                self._remember(writer, number, text, record, is_exception=True)
        elif is_new:
            self._remember(writer, number, text, record, is_exception=False)
        elif record.level is Level.NONE and _LONE_EXCEPTION.match(statement):
            self._end(writer)
            self._remember(writer, number, text, record, is_exception=True)

    def expire(self, number: int) -> list[Unknown]:
        """The unknown errors that waited long enough, or whose record is over."""
        self.next_due = None
        for writer in self._writers.values():
            unknown = writer.unknown
            if unknown is None:
                continue
            if writer.in_traceback and number - unknown.number < LONGEST_TRACEBACK:
                unknown.due = max(unknown.due, number + PATIENCE_LINES)
            if unknown.due <= number:
                self._end(writer)
            else:
                self._due_at(unknown.due)
        over, self._over = self._over, []
        return over

    def settle(self) -> list[Unknown]:
        """Nothing more is to be expected: all unknown errors."""
        for writer in self._writers.values():
            self._end(writer)
        return self.expire(0)

    def forget(self) -> list[Unknown]:
        """Another server begins: all unknown errors of the last one."""
        unknown = self.settle()
        self._writers.clear()
        return unknown

    # -- inner ---------------------------------------------------------------------------------

    def _writer(self, record: Record) -> Writer:
        key = (record.process, record.pid, record.rank)
        writer = self._writers.get(key)
        if writer is None:
            if len(self._writers) >= MOST_WRITERS:
                self._end(self._writers.popitem(last=False)[1])
            writer = self._writers[key] = Writer()
        return writer

    @staticmethod
    def _is_body(writer: Writer, record: Record, message: str) -> bool:
        if message.startswith('  File "'):
            writer.in_traceback = True
        # With a level in front, deep indentation is a source line of a traceback whose head this
        # log does not have; without one it may be a table.
        return writer.in_traceback or (
            record.level is not Level.NONE and message.startswith("    ")
        )

    def _begin(self, writer: Writer) -> None:
        """A traceback begins."""
        if not writer.is_chained:
            if writer.unknown is not None and writer.unknown.is_exception:
                self._end(writer)
            writer.is_known = False
        writer.is_chained = writer.is_new = False
        writer.in_traceback = True
        writer.frames.clear()

    def _end(self, writer: Writer) -> None:
        """The record of a process is over."""
        if writer.unknown is not None:
            self._over.append(writer.unknown)
            self.next_due = 0
        writer.unknown = writer.heading = None
        writer.is_known = writer.is_chained = writer.in_traceback = writer.is_new = False
        writer.frames.clear()

    def _remember(
        self, writer: Writer, number: int, text: str, record: Record, *, is_exception: bool
    ) -> None:
        due = number + PATIENCE_LINES
        writer.unknown = Unknown(number, text, record, is_exception, due)
        self._due_at(due)

    def _due_at(self, due: int) -> None:
        if self.next_due is None or due < self.next_due:
            self.next_due = due
