"""``gpu-dash sessions list``: one line per session."""

from __future__ import annotations

import click
import msgspec

from gpu_dash.cli.options import print_json
from gpu_dash.cli.sessions import words
from gpu_dash.model.errors import RecordError
from gpu_dash.model.text import strip_controls
from gpu_dash.record.folder import session_folders, sessions_root
from gpu_dash.record.summary import SessionSummary, summarize_session
from gpu_dash.record.words import clock, size

_HEAD = ("SESSION", "STARTED (UTC)", "LASTED", "MODEL", "GPUS", "STEPS", "BEST", "PEAK", "SIZE", "")


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, oldest first.")
def command(as_json: bool) -> None:
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
        words.print_table([_HEAD, *(_row(summary) for summary in summaries)])


def _row(summary: SessionSummary) -> tuple[str, ...]:
    best = summary.best_output_tokens_per_s
    return (
        summary.session,
        summary.started_utc[:19].replace("T", " "),
        clock(summary.duration_s),
        summary.model,
        str(len(summary.gpus)),
        str(summary.steps),
        words.NOT_OFFERED if best is None else f"{best:.0f} tok/s at {_best_load(summary)}",
        words.value(summary.peak_temperature_celsius, " °C"),
        size(summary.size_bytes),
        _outcome(summary),
    )


def _best_load(summary: SessionSummary) -> str:
    return words.load(summary.best_concurrency, summary.best_request_rate)


def _outcome(summary: SessionSummary) -> str:
    if not summary.ended_utc:
        return "open"
    return "" if summary.verdict is None else words.passed(summary.verdict.passed)
