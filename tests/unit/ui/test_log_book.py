"""Lines and what the cards did in one order, however they came."""

from __future__ import annotations

import pytest

from gpu_dash.agent.store import Store
from gpu_dash.model import events as ev
from gpu_dash.model.gpu import ThrottleKind
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.ui.log_book import (
    Gap,
    LogBook,
    LogFilter,
    checks_of,
    kind_of,
    severity_of,
    text_of,
)
from tests.ui.scenes import began


def lines(first: int, last: int, **more: object) -> ev.LogLines:
    return ev.LogLines(
        at=float(last),
        lines=tuple(LogLine(number, f"line {number}") for number in range(first, last + 1)),
        **more,  # type: ignore[arg-type]
    )


def throttled(at: float, gpu: int = 3) -> ev.ThrottleBegan:
    return ev.ThrottleBegan(at=at, gpu=gpu, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",))


def shown(book: LogBook) -> list[str]:
    return [
        f"{kind_of(entry)} {text_of(entry)}".strip() for entry in map(book.at, range(book.count))
    ]


class Reader:
    """A store and the book that reads it."""

    def __init__(self, limit: int = 1000) -> None:
        self.store = Store()
        self.book = LogBook(limit)

    def fold(self, *events: ev.Event) -> Reader:
        for event in events:
            self.store.fold(event)
        return self

    def take(self) -> list[str]:
        self.book.take(self.store)
        return shown(self.book)


def test_lines_come_once() -> None:
    reader = Reader()
    reader.fold(lines(1, 2)).take()

    assert reader.fold(lines(3, 4)).take() == ["line 1", "line 2", "line 3", "line 4"]
    assert reader.take() == ["line 1", "line 2", "line 3", "line 4"]


def test_a_throttle_stands_where_it_happened_even_within_one_frame() -> None:
    reader = Reader().fold(lines(1, 2), throttled(2.5), lines(3, 4))

    assert reader.take() == [
        "line 1",
        "line 2",
        "throttle_begin gpu:3 THERMAL  hw_thermal",
        "line 3",
        "line 4",
    ]


def test_the_end_of_a_throttle_says_how_long_and_how_hot() -> None:
    end = ev.ThrottleEnded(
        at=14.0, gpu=3, kind=ThrottleKind.THERMAL, began_at=2.0,
        peak_temperature_celsius=93.0, lowest_sm_clock_mhz=1005.0,
    )  # fmt: skip

    (_, last) = Reader().fold(throttled(2.0), end).take()

    assert last == "throttle_end gpu:3 THERMAL over after 12s  93 °C  1005 MHz"


def test_a_finding_that_is_not_from_the_log_is_an_entry_of_its_own() -> None:
    xid = ev.Finding(
        at=2.0, kind="xid", severity=Severity.CRITICAL, source="kernel", subject="gpu:1",
        message="Xid 79: fallen off the bus",
    )  # fmt: skip
    of_a_line = ev.Finding(
        at=2.0, kind="nccl_timeout", severity=Severity.ERROR, source="log", line=1
    )

    assert Reader().fold(lines(1, 1), xid, of_a_line).take() == [
        "line 1",
        "xid gpu:1 Xid 79: fallen off the bus",
    ]


def test_lines_that_were_dropped_leave_a_gap_that_is_counted() -> None:
    reader = Reader()
    reader.fold(lines(1, 2)).take()

    reader.fold(lines(1001, 1002, dropped=998)).take()

    gap = reader.book.at(2)
    assert gap == Gap(3, 1000)
    assert "998 lines" in text_of(gap)
    assert reader.book.count == 5


def test_a_snapshot_starts_the_book_anew() -> None:
    reader = Reader()
    reader.fold(lines(1, 3)).take()
    reader.store = Store()

    assert reader.fold(lines(2, 4)).take() == ["line 2", "line 3", "line 4"]


def test_a_new_session_starts_the_book_anew() -> None:
    reader = Reader()
    reader.fold(began(session="one"), lines(1, 3)).take()

    assert reader.fold(began(session="two"), lines(1, 5)).take() == [
        f"line {number}" for number in range(1, 6)
    ]


def test_old_entries_are_forgotten_and_numbers_stay() -> None:
    reader = Reader(limit=100)
    reader.fold(lines(1, 100)).take()
    kept = reader.book.number_at(90)
    reader.fold(lines(101, 160)).take()

    assert 100 <= reader.book.count <= 125
    assert text_of(reader.book.at(reader.book.index_of(kept))) == "line 91"
    assert reader.book.index_of(0) == 0


MIXED = (
    ev.LogLines(
        at=1.0,
        lines=(
            LogLine(1, "plain"),
            LogLine(2, "NCCL WARN slow", "allreduce_fallback", Severity.WARNING),
            LogLine(3, "Watchdog caught", "nccl_timeout", Severity.ERROR, True),
            LogLine(4, "EngineDeadError", "engine_dead", Severity.CRITICAL),
            LogLine(5, "plain again"),
        ),
    ),
)


@pytest.mark.parametrize(
    ("which", "text", "numbers"),
    [
        (LogFilter.ALL, "", [1, 2, 3, 4, 5]),
        (LogFilter.FINDINGS, "", [2, 3, 4]),
        (LogFilter.ERRORS, "", [3, 4]),
        (LogFilter.TEXT, "PLAIN", [1, 5]),
        (LogFilter.TEXT, "nccl", [2, 3]),
    ],
)
def test_filters_hold_for_old_and_new_lines(
    which: LogFilter, text: str, numbers: list[int]
) -> None:
    before, after = Reader().fold(*MIXED), Reader()
    before.take()
    before.book.set_filter(which, text)
    after.book.set_filter(which, text)
    after.fold(*MIXED).take()

    for book in (before.book, after.book):
        entries = [book.at(index) for index in range(book.count)]
        assert [entry.number for entry in entries if isinstance(entry, LogLine)] == numbers


def test_the_cause_is_found_before_what_followed_from_it() -> None:
    reader = Reader().fold(*MIXED)
    reader.take()

    found = reader.book.find_cause(reader.book.count - 1)

    assert found is not None
    assert text_of(reader.book.at(found)) == "Watchdog caught"
    assert reader.book.find_cause(found - 1) == 1
    assert reader.book.find_cause(0) is None


def test_search_goes_both_ways_and_needs_a_text() -> None:
    reader = Reader().fold(lines(1, 20))
    reader.take()
    assert reader.book.find(0, 1) is None
    reader.book.set_filter(LogFilter.ALL, "LINE 1")

    assert reader.book.find(1, 1) == 9
    assert reader.book.find(8, -1) == 0
    assert reader.book.find(19, 1) is None


@pytest.mark.parametrize(
    ("kind", "severity"),
    [(ThrottleKind.THERMAL, Severity.ERROR), (ThrottleKind.POWER_CAP, Severity.WARNING)],
)
def test_a_power_cap_is_no_error(kind: ThrottleKind, severity: Severity) -> None:
    reader = Reader().fold(ev.ThrottleBegan(at=1.0, gpu=0, kind=kind, reasons=("x",)))
    reader.take()

    assert severity_of(reader.book.at(0)) is severity


def test_checks_of_a_line_are_those_of_its_newest_finding() -> None:
    first = ev.Finding(
        at=1.0, kind="nccl_timeout", severity=Severity.ERROR, source="log", line=3,
        first_check="old",
    )  # fmt: skip
    newer = ev.Finding(
        at=2.0, kind="nccl_timeout", severity=Severity.ERROR, source="log", line=3,
        first_check="throttle reasons of every card", checks=("kernel log",),
    )  # fmt: skip

    assert checks_of(LogLine(3, "x", "nccl_timeout"), [first, newer]) == [
        "throttle reasons of every card",
        "kernel log",
    ]
    assert checks_of(LogLine(4, "y"), [first, newer]) == []
