"""``gpu-dash sessions``: what was recorded, and the way out of it for other tools."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from gpu_dash.cli.card_steps import HEAD as CARD_HEAD
from gpu_dash.cli.card_steps import card_step_cells, card_steps_of
from gpu_dash.cli.options import print_json
from gpu_dash.model.errors import RecordError
from gpu_dash.model.log import Severity
from gpu_dash.model.text import strip_controls
from gpu_dash.record.export import write_csv, write_json
from gpu_dash.record.folder import find_session, session_folders, sessions_root
from gpu_dash.record.reader import SessionReader
from gpu_dash.record.summary import SessionSummary, summarize_session

SHOWN_FINDINGS = 20


@click.group("sessions")
def command() -> None:
    """The recorded sessions.

    SESSION is a name, the beginning of one, "last", or the path of a session folder.
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, oldest first.")
def list_sessions(as_json: bool) -> None:
    """All sessions of this host, oldest first."""
    summaries = []
    for folder in session_folders():
        try:
            summaries.append(summarize_session(folder))
        except RecordError as error:
            click.echo(f"gpu-dash: {strip_controls(str(error))}", err=True)
    if as_json:
        print_json(msgspec.to_builtins(summaries))
    elif not summaries:
        click.echo(f"no session in {sessions_root()} yet; gpu-dash demo records one")
    else:
        head = ("SESSION", "STARTED (UTC)", "LASTED", "MODEL", "GPUS", "STEPS", "BEST", "PEAK", "")
        _print_table([head, *(_list_row(summary) for summary in summaries)])


@command.command("show")
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="One object: summary, steps, findings.")
def show(session: str, as_json: bool) -> None:
    """One session: what ran, its steps, what was found."""
    folder = find_session(session)
    summary = summarize_session(folder)
    reader = SessionReader(folder)
    steps = list(reader.records("steps.csv"))
    findings = [
        {name: value for name, value in record.items() if name != "data"}
        for record in reader.records("events.csv")
        if record.get("severity") != Severity.INFO
    ]
    if as_json:
        built = msgspec.to_builtins(summary)
        cards = msgspec.to_builtins(card_steps_of(reader))
        print_json({**built, "steps": steps, "cards": cards, "findings": findings})
        return
    _print_head(summary)
    if steps:
        click.echo()
        _print_table([_STEP_HEAD, *(_step_row(step) for step in steps)])
    cards = card_steps_of(reader)
    if cards:
        click.echo()
        _print_table([CARD_HEAD, *(card_step_cells(card) for card in cards)])
    if findings:
        click.echo()
        _print_table([_finding_row(finding) for finding in findings[:SHOWN_FINDINGS]])
        if len(findings) > SHOWN_FINDINGS:
            click.echo(f"and {len(findings) - SHOWN_FINDINGS} more in {folder / 'events.csv'}")


@command.command("export")
@click.argument("session")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["csv", "json"]),
    required=True,
    help="json: everything; csv: ts, gpu, temp, power, sm_clk, util per card and second.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to; stdout if left out.",
)
def export(session: str, format_: str, output: Path | None) -> None:
    """One session as a single file."""
    reader = SessionReader(find_session(session))
    write = write_json if format_ == "json" else write_csv
    if output is None:
        write(reader, sys.stdout)
        return
    try:
        with output.open("w", encoding="utf-8", newline="") as file:
            write(reader, file)
    except OSError as error:
        raise RecordError(f"{output}: {error.strerror}; name a file that you can write") from error


# -- words -------------------------------------------------------------------------------------

_STEP_HEAD = (
    "STEP", "LOAD", "TOK/S", "TTFT P50", "P99", "ITL P50", "P99", "OK", "FAILED",
    "PEAK", "MIN CLOCK", "THERMAL", "J/TOK",
)  # fmt: skip


def _list_row(summary: SessionSummary) -> tuple[str, ...]:
    best = summary.best_output_tokens_per_s
    return (
        summary.session,
        summary.started_utc[:19].replace("T", " "),
        _length(summary.duration_s),
        summary.model,
        str(len(summary.gpus)),
        str(summary.steps),
        "-" if best is None else f"{best:.0f} tok/s at {_value(summary.best_concurrency)}",
        _value(summary.peak_temperature_celsius, " °C"),
        _outcome(summary),
    )


def _outcome(summary: SessionSummary) -> str:
    if not summary.ended_utc:
        return "open"
    return "" if summary.verdict is None else _passed(summary.verdict.passed)


def _passed(passed: bool | None) -> str:
    return {True: "passed", False: "FAILED", None: "not judged"}[passed]


def _print_head(summary: SessionSummary) -> None:
    gpus = ", ".join(f"{summary.gpus.count(name)} × {name}" for name in dict.fromkeys(summary.gpus))
    lines = [
        ("session", summary.session),
        ("folder", summary.folder),
        ("label", summary.label),
        ("profile", summary.profile),
        ("model", summary.model),
        ("GPUs", gpus or "none were read"),
        ("started", summary.started_utc),
        ("ended", summary.ended_utc or "not yet: it goes on, or its agent was killed"),
        ("lasted", _length(summary.duration_s)),
        ("requests", f"{summary.requests_ok} ok, {summary.requests_failed} failed"),
        ("knee", _value(summary.knee_concurrency, " concurrent")),
        ("rows lost", str(summary.rows_lost) if summary.rows_lost else ""),
    ]
    if summary.verdict is not None:
        words = {True: "yes", False: "NO", None: "not judged"}
        lines += [("verdict", _passed(summary.verdict.passed))]
        lines += [
            (condition.name, f"{words[condition.passed]}: {condition.detail}")
            for condition in summary.verdict.conditions
        ]
    _print_table([line for line in lines if line[1] not in ("", "-")])


def _step_row(step: dict[str, Any]) -> tuple[str, ...]:
    load = step.get("concurrency")
    rate = step.get("request_rate")
    return (
        _value(step.get("step")),
        _value(load) if rate is None else f"{rate:g}/s",
        _value(step.get("output_tokens_per_s"), digits=1),
        _milliseconds(step.get("ttft_p50_s")),
        _milliseconds(step.get("ttft_p99_s")),
        _milliseconds(step.get("itl_p50_s")),
        _milliseconds(step.get("itl_p99_s")),
        _value(step.get("requests_ok")),
        _value(step.get("requests_failed")),
        _value(step.get("peak_temperature_celsius"), " °C"),
        _value(step.get("min_sm_clock_mhz"), " MHz"),
        _value(step.get("throttle_thermal_s"), " s", digits=1),
        _value(step.get("joules_per_output_token"), digits=2),
    )


def _finding_row(finding: dict[str, Any]) -> tuple[str, ...]:
    return (
        _value(finding.get("time_s"), " s", digits=1),
        *(finding.get(name) or "-" for name in ("severity", "kind", "subject")),
        finding.get("message") or "",
    )


def _value(value: float | None, unit: str = "", *, digits: int = 0) -> str:
    return "-" if value is None else f"{value:.{digits}f}{unit}"


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f} ms"


def _length(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _print_table(rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; what others wrote is stripped of controls."""
    cells = [[strip_controls(cell) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())
