"""``gpu-dash sessions show``: one session in words."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from gpu_dash.cli.options import print_json
from gpu_dash.cli.sessions import words
from gpu_dash.cli.sessions.card_steps import HEAD as CARD_HEAD
from gpu_dash.cli.sessions.card_steps import card_step_cells
from gpu_dash.model.log import Severity
from gpu_dash.record.card_steps import card_steps_of
from gpu_dash.record.folder import find_session
from gpu_dash.record.reader import SessionReader
from gpu_dash.record.summary import SessionSummary, summarize_session
from gpu_dash.record.words import clock

SHOWN_FINDINGS = 20
_ANSWERS = {True: "yes", False: "NO", None: "not judged"}

_STEP_HEAD = (
    "STEP", "LOAD", "TOK/S", "TTFT P50", "P99", "ITL P50", "P99", "OK", "FAILED",
    "PEAK", "MIN CLOCK", "THERMAL", "J/TOK", "NET",
)  # fmt: skip


@click.command("show")
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="One object: summary, steps, findings.")
def command(session: str, as_json: bool) -> None:
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
    cards = card_steps_of(reader)
    if as_json:
        built, by_card = msgspec.to_builtins(summary), msgspec.to_builtins(cards)
        print_json({**built, "steps": steps, "cards": by_card, "findings": findings})
        return
    _print_head(summary)
    if steps:
        click.echo()
        words.print_table([_STEP_HEAD, *(_step_row(step) for step in steps)])
    if cards:
        click.echo()
        words.print_table([CARD_HEAD, *(card_step_cells(card) for card in cards)])
    if findings:
        click.echo()
        words.print_table([_finding_row(finding) for finding in findings[:SHOWN_FINDINGS]])
        if len(findings) > SHOWN_FINDINGS:
            click.echo(f"and {len(findings) - SHOWN_FINDINGS} more in {folder / 'events.csv'}")


def _print_head(summary: SessionSummary) -> None:
    lines = [
        ("session", summary.session),
        ("folder", summary.folder),
        ("label", summary.label),
        ("profile", summary.profile),
        ("model", summary.model),
        ("GPUs", words.cards(summary.gpus) or "none were read"),
        ("started", summary.started_utc),
        ("ended", summary.ended_utc or "not yet: it goes on, or its agent was killed"),
        ("lasted", clock(summary.duration_s)),
        ("requests", f"{summary.requests_ok} ok, {summary.requests_failed} failed"),
        ("knee", words.value(summary.knee_concurrency, " concurrent")),
        ("rows lost", str(summary.rows_lost) if summary.rows_lost else ""),
    ]
    if summary.verdict is not None:
        lines += [("verdict", words.passed(summary.verdict.passed))]
        lines += [
            (condition.name, f"{_ANSWERS[condition.passed]}: {condition.detail}")
            for condition in summary.verdict.conditions
        ]
    words.print_table([line for line in lines if line[1] not in ("", words.NOT_OFFERED)])


def _step_row(step: dict[str, Any]) -> tuple[str, ...]:
    return (
        words.value(step.get("step")),
        words.load(step.get("concurrency"), step.get("request_rate")),
        words.value(step.get("output_tokens_per_s"), digits=1),
        words.milliseconds(step.get("ttft_p50_s")),
        words.milliseconds(step.get("ttft_p99_s")),
        words.milliseconds(step.get("itl_p50_s")),
        words.milliseconds(step.get("itl_p99_s")),
        words.value(step.get("requests_ok")),
        words.value(step.get("requests_failed")),
        words.value(step.get("peak_temperature_celsius"), " °C"),
        words.value(step.get("min_sm_clock_mhz"), " MHz"),
        words.value(step.get("throttle_thermal_s"), " s", digits=1),
        words.value(step.get("joules_per_output_token"), digits=2),
        words.value(step.get("net_joules_per_output_token"), digits=2),
    )


def _finding_row(finding: dict[str, Any]) -> tuple[str, ...]:
    return (
        words.value(finding.get("time_s"), " s", digits=1),
        *(finding.get(name) or words.NOT_OFFERED for name in ("severity", "kind", "subject")),
        finding.get("message") or "",
    )
