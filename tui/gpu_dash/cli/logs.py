"""``gpu-dash logs``: what the log pane would mark in a saved log."""

from __future__ import annotations

import contextlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo

import click

from gpu_dash.cli.options import print_json
from gpu_dash.logs.heat import advise, seconds_before
from gpu_dash.logs.saved import SavedLog
from gpu_dash.logs.saved_readings import SavedReadings
from gpu_dash.logs.stamps import utc_seconds
from gpu_dash.model.errors import UsageError
from gpu_dash.model.events import Finding
from gpu_dash.model.log import Severity
from gpu_dash.model.text import strip_controls

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_MESSAGE_WIDTH = 300


@click.command("logs")
@click.argument("file", metavar="FILE|-")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines, one object per finding.")
@click.option(
    "--gpu-csv",
    metavar="FILE",
    help="Readings of the cards at that time: a session's gpu.csv, or nvidia-smi --query-gpu CSV.",
)
@click.option(
    "--log-timezone",
    metavar="TZ",
    help="Zone of the log's stamps, as UTC, Europe/Berlin or +02:00; this host's if left out.",
)
@click.option(
    "--log-date",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="A date near which the log was written; its stamps have no year.",
)
@click.option(
    "--all", "show_all", is_flag=True, help="Also what followed from a cause, and mere information."
)
def command(
    file: str,
    as_json: bool,
    gpu_csv: str | None,
    log_timezone: str | None,
    log_date: datetime | None,
    show_all: bool,
) -> None:
    """Find the causes in the log of a vLLM server, of its GPUs and of their kernel.

    FILE is a path, or - for standard input.
    """
    zone = None if log_timezone is None else _zone(log_timezone)
    adviser = None if gpu_csv is None else _Adviser(_readings(gpu_csv, zone), zone, log_date)
    counts: Counter[str] = Counter()
    with _opened(file) as stream:
        log = SavedLog(stream)
        for finding, stamp in log.findings():
            if adviser is not None:
                finding = adviser.advised(finding, stamp)
            if as_json:
                print_json(_row(finding))
                continue
            reason = _hidden_as(finding)
            counts[reason or "shown"] += 1
            if reason is None or show_all:
                click.echo(_paragraph(finding, show_all))
    if not as_json:
        click.echo(_summary(log.line_count, counts, show_all))
    if adviser is not None and adviser.trouble:
        click.echo(f"gpu-dash: {gpu_csv}: {adviser.trouble}", err=True)


class _Adviser:
    """Lays the cards' readings beside the findings."""

    def __init__(
        self, readings: SavedReadings, zone: tzinfo | None, log_date: datetime | None
    ) -> None:
        self._readings = readings
        self._zone = zone
        self._near = readings.begin
        if log_date is not None:
            noon = log_date.replace(hour=12)
            self._near = (
                noon.astimezone() if zone is None else noon.replace(tzinfo=zone)
            ).timestamp()
        self._nearest: float | None = None
        self._has_met = False

    def advised(self, finding: Finding, stamp: str) -> Finding:
        """The finding with what the cards did just before it."""
        before_s = seconds_before(finding)
        if before_s is None:
            return finding
        moment = utc_seconds(stamp, self._zone, self._near)
        if moment is None:
            return finding
        cards = self._readings.between(moment - before_s, moment)
        self._has_met = self._has_met or bool(cards)
        self._nearest = moment
        return advise(finding, cards)

    @property
    def trouble(self) -> str:
        """Why no reading was near a finding, where one was looked for."""
        if self._has_met or self._nearest is None:
            return ""
        begin, end = _utc(self._readings.begin), _utc(self._readings.end)
        return (
            f"its readings ({begin} to {end}) are not of the log's time ({_utc(self._nearest)}); "
            "say the log's zone with --log-timezone and its date with --log-date"
        )


def _utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@contextlib.contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    """The bytes of a file, or of standard input for ``-``."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    with stream:
        yield stream


def _readings(path: str, zone: tzinfo | None) -> SavedReadings:
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as lines:
            return SavedReadings(lines, path, zone)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _zone(text: str) -> tzinfo:
    """``UTC``, ``Europe/Berlin``, ``+02:00``.

    Raises:
        UsageError: it is none of these.
    """
    offset = _OFFSET.fullmatch(text.strip())
    if offset is not None:
        sign = 1 if offset[1] == "+" else -1
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        if minutes < 24 * 60:
            return timezone(sign * timedelta(minutes=minutes))
    if text.strip().upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return ZoneInfo(text.strip())
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(
            f"--log-timezone: {text!r} is no time zone; write UTC, Europe/Berlin or +02:00"
        ) from error


# -- what is printed ---------------------------------------------------------------------------


def _row(finding: Finding) -> dict[str, object]:
    return {
        "line": finding.line,
        "kind": finding.kind,
        "severity": str(finding.severity),
        "subject": finding.subject or None,
        "root": finding.root,
        "count": finding.count,
        "message": finding.message,
        "first_check": finding.first_check,
        "checks": list(finding.checks),
    }


def _hidden_as(finding: Finding) -> str | None:
    """Why a finding is not shown without ``--all``."""
    if not finding.root:
        return "followed"
    return "info" if finding.severity is Severity.INFO else None


def _paragraph(finding: Finding, show_all: bool) -> str:
    words = [f"line {finding.line}", str(finding.severity).upper(), finding.kind]
    if finding.subject:
        words.append(finding.subject)
    if finding.count > 1:
        words.append(f"{finding.count} times")
    if not finding.root:
        words.append("(followed)")
    message = strip_controls(finding.message)
    if len(message) > _MESSAGE_WIDTH:
        message = message[:_MESSAGE_WIDTH] + "…"
    lines = ["  ".join(words), f"    {message}", f"    check: {finding.first_check}"]
    if finding.root or show_all:
        lines += [f"    then:  {check}" for check in finding.checks]
    return "\n".join(map(strip_controls, lines))


def _summary(line_count: int, counts: Counter[str], show_all: bool) -> str:
    words = [f"{line_count:,} lines"]
    words.append(f"{counts['shown']:,} found" if counts["shown"] else "nothing found")
    if counts["followed"]:
        words.append(f"{counts['followed']:,} followed from these")
    if counts["info"]:
        words.append(f"{counts['info']:,} for information only")
    hidden = counts["followed"] + counts["info"]
    return ", ".join(words) + (" (--all shows them)" if hidden and not show_all else "")
