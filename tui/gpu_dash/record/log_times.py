"""Lines of ``server.log`` with the moments at which they were written, as well as these are known.

vLLM stamps its own lines with local time to the second and without the year; most other lines
have no stamp. A line without one has the time of the line before. A line that a finding names
was there when the finding was made, so no line up to it is later than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from gpu_dash.model.events import Finding, LogLines
from gpu_dash.model.log import LogLine
from gpu_dash.model.text import strip_controls

_STAMP = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?=[ \]])"
)
_STAMP_WITHIN = 200
"""Characters at the head of a line in which its stamp stands, behind prefix and level."""
_BATCH_LINES = 1000


def timed_lines(
    lines: Iterable[str], *, start_utc: float, utc_offset_s: int, findings: Iterable[Finding]
) -> Iterator[LogLines]:
    """Batches of lines in order, none before the one in front of it.

    Args:
        lines: the log's, with or without their ends.
        start_utc: seconds since the epoch at the session's start.
        utc_offset_s: local time of the log minus UTC.
        findings: what was found in the log, their times counted from the session's start.
    """
    found = {finding.line: finding for finding in findings if finding.line is not None}
    latest = _latest_moments(found)
    at = 0.0
    batch: list[LogLine] = []
    for number, text in enumerate(lines, 1):
        moment = _moment(text, start_utc, utc_offset_s)
        moment = at if moment is None else max(at, moment)
        moment = min(moment, next(latest, float("inf")))
        if batch and (moment > at or len(batch) >= _BATCH_LINES):
            yield LogLines(at=at, lines=tuple(batch))
            batch = []
        at = max(at, moment)
        batch.append(_line(number, text, found))
    if batch:
        yield LogLines(at=at, lines=tuple(batch))


def _latest_moments(found: Mapping[int, Finding]) -> Iterator[float]:
    """For each line number from 1 on: the moment by which it must have been there."""
    number = 1
    earliest_after: list[tuple[int, float]] = []
    earliest = float("inf")
    for line in sorted(found, reverse=True):
        earliest = min(earliest, found[line].at)
        earliest_after.append((line, earliest))
    for line, moment in reversed(earliest_after):
        while number <= line:
            yield moment
            number += 1


def _line(number: int, text: str, found: Mapping[int, Finding]) -> LogLine:
    text = strip_controls(text.rstrip("\r\n"))
    finding = found.get(number)
    if finding is None:
        return LogLine(number, text)
    return LogLine(number, text, finding.kind, finding.severity)


def _moment(text: str, start_utc: float, utc_offset_s: int) -> float | None:
    """Seconds since the session's start that a line's own stamp says."""
    match = _STAMP.search(text, 0, _STAMP_WITHIN)
    if match is None:
        return None
    start = datetime.fromtimestamp(start_utc, UTC) + timedelta(seconds=utc_offset_s)
    month, day, hour, minute, second = (int(part) for part in match.groups())
    year = start.year + (1 if month < start.month else 0)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return (moment - start).total_seconds()
