"""The log reader: a thread that follows the server's log and hands over what it found.

Reading and classifying have a thread of their own, so that a burst of twenty thousand lines does
not delay a key or a request. The receiver is called in that thread, at most every 50 ms.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpu_dash.logs.classify import Classifier
from gpu_dash.logs.lines import LineAssembler
from gpu_dash.logs.source import ByteSource, FileSource, Piece
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.events import Finding
from gpu_dash.model.log import LogLine

INTERVAL_S = 0.05
CHUNK_BYTES = 512 * 1024
"""Read at most this much at once: some 4,000 lines, a few milliseconds of work, so that the
thread gives way to others in between; 80,000 lines a second when there is much to catch up."""
QUIET_S = 0.3
"""A source that is silent for this long has ended what it was saying: a record whose end is seen
only by what follows is judged as it is."""
UNFINISHED_S = 1.0
"""A line that is still without its end after this long is shown as it stands."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one reading brought. ``offset`` and ``line_count`` are what to keep for going on
    later: :meth:`LogFollower.start` takes them."""

    lines: tuple[LogLine, ...]
    """Whole lines, in order."""
    findings: tuple[Finding, ...]
    """New ones, and known ones of which more is known now: see
    :attr:`~gpu_dash.model.events.Finding.line`."""
    offset: int
    """Bytes of the file up to the end of the last whole line."""
    line_count: int
    """Number of the last whole line. It goes on when the file is cut or replaced, so that a
    number means one line for a whole session."""
    unfinished: LogLine | None = None
    """The last line as it stands, when it has been without an end for a second: a progress bar,
    a prompt. It has the number that it will have, is in ``lines`` only once it ends, and each
    one replaces the one before."""
    restarted: str = ""
    """Why reading began again from the start of a file, in words."""
    trouble: str = ""
    """Why the log cannot be read at the moment, in words; said once."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far reading is behind what is written."""

    backlog_bytes: int
    seconds: float
    """Since everything had been read; 0 when it is so now."""


class LogFollower:
    """Follows one log from a byte offset in a daemon thread.

    Args:
        source: the path of the file, which need not exist yet, or another source of bytes.
        on_batch: called in the follower's thread. It must not block; an exception ends the
            thread.
        clock: where the stamps come from.
    """

    def __init__(
        self,
        source: Path | ByteSource,
        on_batch: Callable[[Batch], None],
        clock: Clock | None = None,
    ) -> None:
        self._origin = source
        self._on_batch = on_batch
        self._clock = clock or SystemClock()
        self._classifier = Classifier()
        self._assembler = LineAssembler()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._base = 0
        self._line_count = 0
        self._trouble = ""
        self._unfinished: LogLine | None = None
        self._open_since: float | None = None
        self._quiet_since = self._all_read_at = self._clock.monotonic()
        self._is_settled = True
        self._lag = Lag(0, 0.0)

    def start(self, offset: int = 0, first_line_number: int = 1) -> None:
        """Begin to read, in the background.

        Args:
            offset: where the first line to read begins, in bytes.
            first_line_number: the number of that line.
        """
        source = self._origin
        if isinstance(source, Path):
            source = FileSource(source, offset)
        self._base = offset
        self._line_count = first_line_number - 1
        self._thread = threading.Thread(
            target=self._follow, args=(source,), name="log-follower", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Read what is there up to now, hand it over and end; returns when that is done.

        A last line without a line feed is handed over as it is; ``offset`` and ``line_count`` do
        not count it, so that whoever goes on from them reads it whole.
        """
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def lag(self) -> Lag:
        """How far reading was behind at the last look."""
        return self._lag

    # -- in the thread -----------------------------------------------------------------------

    def _follow(self, source: ByteSource) -> None:
        due = self._clock.monotonic()
        try:
            while not self._stopping.wait(max(0.0, due - self._clock.monotonic())):
                self._poll(source, CHUNK_BYTES)
                due = max(due + INTERVAL_S, self._clock.monotonic())
            self._drain(source)
        finally:
            source.close()

    def _poll(self, source: ByteSource, limit: int) -> int:
        """One reading; how many bytes it brought."""
        now = self._clock.monotonic()
        try:
            piece = source.read(limit)
            backlog = source.backlog_bytes()
        except OSError as error:
            self._report_trouble(f"the log cannot be read: {error}")
            return 0
        self._trouble = ""
        self._lag = Lag(backlog, now - self._all_read_at if backlog else 0.0)
        if not backlog:
            self._all_read_at = now
        lines, findings = self._take(piece, now)
        if lines:
            self._open_since = None
        if piece.data:
            self._quiet_since, self._is_settled = now, False
        elif not self._is_settled and now - self._quiet_since >= QUIET_S:
            self._is_settled = True
            findings += self._classifier.settle(now)
        self._hand_over(lines, findings, self._open_line(now), piece.restarted)
        return len(piece.data)

    def _take(self, piece: Piece, now: float) -> tuple[list[LogLine], list[Finding]]:
        texts: list[str] = []
        if piece.restarted:
            texts += self._assembler.restart()
            self._base = 0
        texts += self._assembler.feed(piece.data)
        classified = self._classifier.feed(texts, self._line_count + 1, now)
        self._line_count += len(texts)
        return classified

    def _open_line(self, now: float) -> LogLine | None:
        """The line without an end, once it has been so for a while."""
        if not self._assembler.has_open_line:
            self._open_since = None
            return None
        if self._open_since is None:
            self._open_since = now
        if now - self._open_since < UNFINISHED_S:
            return None
        return self._classifier.shown(self._line_count + 1, self._assembler.open_text())

    def _hand_over(
        self,
        lines: list[LogLine],
        findings: list[Finding],
        unfinished: LogLine | None = None,
        restarted: str = "",
    ) -> None:
        if not (lines or findings or restarted) and unfinished == self._unfinished:
            return
        self._unfinished = unfinished
        self._on_batch(
            Batch(
                lines=tuple(lines),
                findings=tuple(findings),
                offset=self._base + self._assembler.whole_bytes,
                line_count=self._line_count,
                unfinished=unfinished,
                restarted=restarted,
            )
        )

    def _report_trouble(self, trouble: str) -> None:
        if trouble == self._trouble:
            return
        self._trouble = trouble
        offset = self._base + self._assembler.whole_bytes
        self._on_batch(Batch((), (), offset, self._line_count, trouble=trouble))

    def _drain(self, source: ByteSource) -> None:
        """What is there now, though more may be written while it is read."""
        left = self._poll(source, CHUNK_BYTES) and self._lag.backlog_bytes
        while left > 0 and (count := self._poll(source, min(left, CHUNK_BYTES))):
            left -= count
        now = self._clock.monotonic()
        lines: list[LogLine] = []
        findings: list[Finding] = []
        if self._assembler.has_open_line:
            lines, findings = self._classifier.feed(
                [self._assembler.open_text()], self._line_count + 1, now
            )
        self._hand_over(lines, findings + self._classifier.settle(now))
