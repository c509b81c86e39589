"""A log that was written before: all of its findings, in the order of their lines.

What a line means may become clear only later: the cause in the line of a worker may be printed
below what followed from it, and a repeat counts up. So findings are held back until the log has
ended, or until there are too many of them; a log of any size takes the same memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from gpu_dash.logs.classify import Classifier
from gpu_dash.logs.grammar import parse
from gpu_dash.logs.lines import LineAssembler
from gpu_dash.logs.tracebacks import LONGEST_TRACEBACK, PATIENCE_LINES
from gpu_dash.model.events import Finding
from gpu_dash.model.text import strip_controls

CHUNK_BYTES = 512 * 1024
MOST_HELD = 4096
"""Findings held back. With more, the older ones are told as they are known."""
STILL_OPEN_LINES = LONGEST_TRACEBACK + PATIENCE_LINES
"""A finding that is new is at most this many lines above the newest line."""
STAMP_NEARBY_LINES = 500
"""A line without a stamp was written about when the nearest line above it was."""


class SavedLog:
    """Reads a log from its first byte to its last.

    Args:
        stream: the bytes.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.line_count = 0
        """Lines read so far."""
        self._stream = stream
        self._assembler, self._classifier = LineAssembler(), Classifier()
        self._held: dict[int, Finding] = {}
        self._stamps: dict[int, str] = {}
        self._told_up_to = 0
        """Line of the last finding that was told: what becomes known of it later is lost."""
        self._last_stamp = ""

    def findings(self) -> Iterator[tuple[Finding, str]]:
        """Every finding as it stands at the end, with the stamp of its line (or one nearby)."""
        while data := self._stream.read(CHUNK_BYTES):
            self._take(self._assembler.feed(data))
            if len(self._held) > MOST_HELD:
                yield from self._tell(self.line_count - STILL_OPEN_LINES, MOST_HELD // 2)
        if self._assembler.has_open_line:
            self._take([self._assembler.open_text()])
        self._hold(self._classifier.settle(at=0.0), (), self.line_count + 1)
        yield from self._tell(self.line_count, 0)

    def _take(self, texts: Sequence[str]) -> None:
        first_number = self.line_count + 1
        self.line_count += len(texts)
        _, news = self._classifier.feed(texts, first_number, at=0.0)
        self._hold(news, texts, first_number)

    def _hold(self, news: Sequence[Finding], texts: Sequence[str], first_number: int) -> None:
        for finding in news:
            line = finding.line or 0
            if line <= self._told_up_to:
                continue
            if line not in self._held:
                self._stamps[line] = self._stamp(finding, texts, line - first_number)
            self._held[line] = finding

    def _stamp(self, finding: Finding, texts: Sequence[str], at: int) -> str:
        stamp = parse(finding.message).stamp
        for index in range(at - 1, max(-1, at - 1 - STAMP_NEARBY_LINES), -1):
            if stamp:
                break
            stamp = parse(strip_controls(texts[index])).stamp
        self._last_stamp = stamp or self._last_stamp
        return self._last_stamp

    def _tell(self, up_to_line: int, keep: int) -> Iterator[tuple[Finding, str]]:
        """Tell the oldest findings, but none below ``up_to_line``, and keep so many."""
        lines = sorted(self._held)
        for line in lines[: len(lines) - keep]:
            if line > up_to_line:
                break
            self._told_up_to = line
            yield self._held.pop(line), self._stamps.pop(line)
