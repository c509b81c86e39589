"""The follower on real files: appended to, cut, replaced, late, huge and fast."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PosixPath

import pytest

from gpu_dash.logs.follow import Batch, LogFollower
from gpu_dash.logs.source import FileSource, Piece
from gpu_dash.model.log import LogLine
from tests.unit.logs.saying import capture, latest

DEADLINE_S = 10.0


class Received:
    """What a follower handed over, in the order in which it came."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.moments: list[float] = []
        self._changed = threading.Condition()

    def __call__(self, batch: Batch) -> None:
        with self._changed:
            self.batches.append(batch)
            self.moments.append(time.monotonic())
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, DEADLINE_S), self.batches[-3:]

    @property
    def lines(self) -> list[LogLine]:
        return [line for batch in self.batches for line in batch.lines]

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self.lines]

    @property
    def last(self) -> Batch:
        return self.batches[-1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def received() -> Received:
    return Received()


@pytest.fixture
def follower(path: Path, received: Received) -> Iterator[LogFollower]:
    follower = LogFollower(path, received)
    yield follower
    follower.stop()


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as log:
        log.write(text)


def test_a_file_that_is_not_there_yet(
    follower: LogFollower, path: Path, received: Received
) -> None:
    follower.start()
    append(path, "one\ntwo\n")

    received.wait_for(lambda: received.texts == ["one", "two"])

    assert [line.number for line in received.lines] == [1, 2]
    assert (received.last.offset, received.last.line_count) == (8, 2)


def test_reading_goes_on_where_it_stopped(path: Path, received: Received) -> None:
    append(path, "one\ntwo\nthree without an end")
    first = LogFollower(path, received)
    first.start()
    first.stop()
    kept = received.last
    append(path, ", now with one\nfour\n")
    again = Received()
    second = LogFollower(path, again)
    second.start(kept.offset, kept.line_count + 1)
    second.stop()

    assert received.texts == ["one", "two", "three without an end"]
    assert (kept.offset, kept.line_count) == (8, 2)
    assert [(line.number, line.text) for line in again.lines] == [
        (3, "three without an end, now with one"),
        (4, "four"),
    ]


def test_stopping_hands_over_what_is_there(
    follower: LogFollower, path: Path, received: Received
) -> None:
    append(path, "line\n" * 30_000 + "last")
    follower.start()
    follower.stop()

    assert len(received.lines) == 30_001
    assert received.lines[-1].text == "last"
    assert received.last.line_count == 30_000


def test_a_file_that_is_cut_is_read_again_from_its_start(
    follower: LogFollower, path: Path, received: Received
) -> None:
    append(path, "a long first line\nopen")
    follower.start()
    received.wait_for(lambda: received.texts == ["a long first line"])
    os.truncate(path, 0)
    append(path, "new\n")

    received.wait_for(lambda: "new" in received.texts)

    assert received.texts == ["a long first line", "open", "new"]
    assert [line.number for line in received.lines] == [1, 2, 3]
    assert "was cut" in next(b.restarted for b in received.batches if b.restarted)
    assert (received.last.offset, received.last.line_count) == (4, 3)


def test_a_file_that_is_cut_is_counted_from_its_new_start(path: Path, received: Received) -> None:
    append(path, "old one\nold two\n")
    follower = LogFollower(path, received)
    follower.start(8, 2)
    received.wait_for(lambda: received.texts == ["old two"])
    os.truncate(path, 0)
    append(path, "new\n")
    received.wait_for(lambda: "new" in received.texts)
    follower.stop()

    assert (received.last.offset, received.last.line_count) == (4, 3)


def test_a_file_that_is_replaced_is_read_to_its_end_first(
    follower: LogFollower, path: Path, received: Received
) -> None:
    append(path, "old one\n")
    follower.start()
    received.wait_for(lambda: received.texts == ["old one"])
    append(path, "old two\n")
    path.rename(path.with_suffix(".1"))
    append(path, "new one\n")

    received.wait_for(lambda: "new one" in received.texts)

    assert received.texts == ["old one", "old two", "new one"]
    assert "was replaced" in next(b.restarted for b in received.batches if b.restarted)


def test_what_is_written_while_the_file_is_replaced_is_not_lost(path: Path) -> None:
    old = path.with_suffix(".1")

    class Replaced(PosixPath):
        """Written to once more at the moment at which its name is looked at."""

        def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
            if not old.exists():
                path.rename(old)
                append(old, "two\n")
                append(path, "new\n")
            return super().stat(follow_symlinks=follow_symlinks)

    append(path, "one\n")
    source = FileSource(Replaced(path))
    pieces = [source.read(100) for _ in range(4)]
    source.close()

    assert [piece.data for piece in pieces if piece.data] == [b"one\n", b"two\n", b"new\n"]
    assert [bool(piece.restarted) for piece in pieces if piece.data] == [False, False, True]


def test_a_deleted_file_is_followed_until_another_one_comes(
    follower: LogFollower, path: Path, received: Received
) -> None:
    with path.open("w", encoding="utf-8") as log:
        log.write("one\n")
        log.flush()
        follower.start()
        received.wait_for(lambda: received.texts == ["one"])
        path.unlink()
        log.write("two\n")
        log.flush()
        received.wait_for(lambda: received.texts == ["one", "two"])
    append(path, "three\n")

    received.wait_for(lambda: received.texts == ["one", "two", "three"])


def test_a_line_of_megabytes(follower: LogFollower, path: Path, received: Received) -> None:
    follower.start()
    append(path, "before\n" + "x" * 3_000_000 + "\nafter\n")

    received.wait_for(lambda: "after" in received.texts)

    assert [len(text) for text in received.texts] == [6, 4097, 5]
    assert received.last.offset == 7 + 3_000_001 + 6


def test_bytes_that_are_no_text(follower: LogFollower, path: Path, received: Received) -> None:
    path.write_bytes(b"\xff\xfe\x00bad\x1b[2J\nok\n")
    follower.start()

    received.wait_for(lambda: len(received.texts) == 2)

    assert received.texts == ["\ufffd\ufffdbad", "ok"]


def test_a_progress_bar_is_shown_while_it_moves_and_counted_once(
    follower: LogFollower, path: Path, received: Received
) -> None:
    follower.start()
    append(path, "\rbar:   0%|")
    received.wait_for(lambda: received.batches != [] and received.last.unfinished is not None)
    append(path, "\rbar:  50%|")
    received.wait_for(
        lambda: received.last.unfinished == LogLine(1, "bar:  50%|"),
    )
    assert received.lines == []
    append(path, "\rbar: 100%|\n")
    received.wait_for(lambda: received.lines != [])

    assert received.lines == [LogLine(1, "bar: 100%|")]
    assert received.last.unfinished is None


class HastyClock:
    """Ten seconds pass in each."""

    def monotonic(self) -> float:
        return time.monotonic() * 10

    def utc(self) -> float:
        return time.time()


def test_a_line_that_is_soon_ended_is_not_shown_unfinished(received: Received) -> None:
    class Busy:
        """Each reading ends in the middle of a line."""

        def __init__(self) -> None:
            self.calls = 0

        def read(self, limit: int) -> Piece:
            self.calls += 1
            return Piece(b"the end\nthe beginning of the next, " if self.calls < 10 else b"")

        def backlog_bytes(self) -> int:
            return 0

        def close(self) -> None:
            pass

    follower = LogFollower(Busy(), received, HastyClock())
    follower.start()
    received.wait_for(lambda: bool(received.batches) and received.last.unfinished is not None)
    follower.stop()

    shown = [number for number, batch in enumerate(received.batches) if batch.unfinished]
    assert shown[0] >= 9


def test_a_file_that_may_not_be_read_is_said_once_and_tried_again(received: Received) -> None:
    class Stubborn:
        def __init__(self) -> None:
            self.calls = 0

        def read(self, limit: int) -> Piece:
            self.calls += 1
            if self.calls < 4:
                raise PermissionError("no permission")
            return Piece(b"at last\n" if self.calls == 4 else b"")

        def backlog_bytes(self) -> int:
            return 0

        def close(self) -> None:
            pass

    follower = LogFollower(Stubborn(), received)
    follower.start()
    received.wait_for(lambda: received.texts == ["at last"])
    follower.stop()

    assert [batch.trouble for batch in received.batches if batch.trouble] == [
        "the log cannot be read: no permission"
    ]


def test_an_error_of_no_kind_is_said_when_the_log_falls_silent(
    follower: LogFollower, path: Path, received: Received
) -> None:
    follower.start()
    append(path, "Traceback (most recent call last):\nTypeError: something new\n")

    received.wait_for(lambda: any(batch.findings for batch in received.batches))

    assert [f.kind for batch in received.batches for f in batch.findings] == ["python_error"]


def test_a_crash_of_twenty_thousand_lines_at_once(
    follower: LogFollower, path: Path, received: Received
) -> None:
    """The cause is marked with the first bytes; the rest follows within a second or two."""
    follower.start()
    path.write_bytes(capture("worker-killed"))
    written_at = time.monotonic()

    received.wait_for(lambda: len(received.lines) == 19829)
    follower.stop()

    cause = next(
        number
        for number, batch in enumerate(received.batches)
        if any(finding.line == 360 for finding in batch.findings)
    )
    assert received.moments[cause] - written_at < 1.0
    findings = latest(f for batch in received.batches for f in batch.findings)
    assert [(f.line, f.kind, f.root) for f in findings] == [
        (360, "worker_died", True),
        (383, "engine_dead", False),
    ]
    assert sum(len(batch.findings) for batch in received.batches) < 20


def test_ten_thousand_lines_a_second(follower: LogFollower, path: Path, received: Received) -> None:
    """Written for two seconds by the clock, read within one more, never much behind."""
    follower.start()
    lags = []
    begun = time.monotonic()
    count = 0
    with path.open("w", encoding="utf-8") as log:
        while (elapsed := time.monotonic() - begun) < 2.0:
            while count < elapsed * 10_000:
                log.write(f'INFO:     127.0.0.1:{count} - "POST /v1/completions HTTP/1.1" 200 OK\n')
                count += 1
            log.flush()
            lags.append(follower.lag.seconds)
            time.sleep(0.01)
    ended = time.monotonic()
    received.wait_for(lambda: len(received.lines) == count)

    assert received.moments[-1] - ended < 1.0
    assert max(lags) < 1.0
    assert [line.number for line in received.lines] == list(range(1, count + 1))
    pauses = [b - a for a, b in zip(received.moments, received.moments[1:], strict=False)]
    assert len(pauses) < 3.0 / 0.05


def test_no_thread_is_left(path: Path, received: Received) -> None:
    follower = LogFollower(path, received)
    follower.start()
    follower.stop()
    follower.stop()

    assert not any(thread.name == "log-follower" for thread in threading.enumerate())
