"""When a line of the log was written, as well as that is known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpu_dash.model.events import Finding, LogLines
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.record.log_times import timed_lines

START = datetime(2026, 12, 31, 23, 59, 50, 500_000, tzinfo=UTC).timestamp()


def finding(line: int, at: float, kind: str = "xid") -> Finding:
    return Finding(at=at, kind=kind, severity=Severity.ERROR, source="log", line=line)


def times(lines: list[str], *findings: Finding, offset_s: int = 0) -> list[tuple[int, float]]:
    """Number and time of each line."""
    batches = timed_lines(lines, start_utc=START, utc_offset_s=offset_s, findings=findings)
    return [(line.number, batch.at) for batch in batches for line in batch.lines]


@pytest.mark.parametrize(
    "line",
    [
        "INFO 12-31 23:59:55 [core.py:58] x",
        "(EngineCore pid=12) INFO 12-31 23:59:55 [core.py:58] x",
        "(Worker_TP1 pid=12) WARNING 12-31 23:59:55 [core.py:58] x",
        "INFO 12-31 23:59:55 core.py:58] x",
        "\x1b[0;36m(APIServer pid=1)\x1b[0;0m \x1b[32mINFO 12-31 23:59:55 [a.py:1] x\x1b[0m",
    ],
)
def test_vllms_own_stamp_is_read(line: str) -> None:
    assert times([line]) == [(1, 4.5)]


def test_a_line_without_a_stamp_has_the_time_of_the_one_before() -> None:
    lines = [
        "no stamp yet",
        "INFO 12-31 23:59:52 [a.py:1] x",
        "Traceback (most recent call last):",
        "INFO 12-31 23:59:58 [a.py:1] y",
        '  File "INFO 99-99 00:00:00 [b.py]"',
    ]
    assert times(lines) == [(1, 0.0), (2, 1.5), (3, 1.5), (4, 7.5), (5, 7.5)]


def test_time_never_goes_back_nor_before_the_start() -> None:
    lines = [
        "INFO 12-31 23:00:00 [a.py:1] before the session",
        "INFO 12-31 23:59:58 [a.py:1] x",
        "INFO 12-31 23:59:57 [a.py:1] of another process",
    ]
    assert times(lines) == [(1, 0.0), (2, 7.5), (3, 7.5)]


def test_the_year_may_change() -> None:
    assert times(["INFO 01-01 00:00:10 [a.py:1] x"]) == [(1, 19.5)]


def test_stamps_are_local_time() -> None:
    assert times(["INFO 01-01 01:59:55 [a.py:1] x"], offset_s=7200) == [(1, 4.5)]


def test_no_line_is_later_than_a_finding_behind_it() -> None:
    lines = [f"INFO 12-31 23:59:5{second} [a.py:1] x" for second in (2, 5, 8)] + ["end"]
    assert times(lines, finding(2, 3.25)) == [(1, 1.5), (2, 3.25), (3, 7.5), (4, 7.5)]
    assert times(lines, finding(3, 0.75)) == [(1, 0.75), (2, 0.75), (3, 0.75), (4, 0.75)]


def test_lines_without_any_stamp_stay_in_front_of_what_was_found_in_them() -> None:
    assert times(["a", "b", "c"], finding(2, 5.0)) == [(1, 0.0), (2, 0.0), (3, 0.0)]


def test_a_found_line_carries_its_mark_and_foreign_text_is_stripped() -> None:
    (batch,) = timed_lines(
        ["one\n", "\x1b[31mtwo\x1b[0m\r\n"],
        start_utc=START,
        utc_offset_s=0,
        findings=[finding(2, 1.0, "nccl_timeout")],
    )
    assert batch == LogLines(
        at=0.0,
        lines=(LogLine(1, "one"), LogLine(2, "two", "nccl_timeout", Severity.ERROR)),
    )


def test_a_burst_comes_in_batches() -> None:
    batches = list(timed_lines(["x"] * 2500, start_utc=START, utc_offset_s=0, findings=[]))
    assert [len(batch.lines) for batch in batches] == [1000, 1000, 500]
    assert batches[-1].lines[-1].number == 2500
