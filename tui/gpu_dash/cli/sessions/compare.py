"""``gpu-dash sessions compare``: runs side by side, load by load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_uppercase

import click
import msgspec

from gpu_dash.analysis.comparison import (
    Comparison,
    LoadRow,
    RunAtLoad,
    RunHead,
    compare,
)
from gpu_dash.cli.options import print_json
from gpu_dash.cli.sessions import words
from gpu_dash.model.errors import UsageError
from gpu_dash.model.text import strip_controls
from gpu_dash.record.folder import find_session
from gpu_dash.record.run import read_run

_LEGEND = ("RUN", "NAME", "CARDS", "MODEL", "VLLM", "PROFILE", "BEST", "KNEE", "VERDICT", "SESSION")
_HEAD = (
    "LOAD", "RUN", "TOK/S", "RATIO", "TTFT P50", "P99", "TPOT P50", "PEAK", "THROTTLED",
    "MIN CLOCK", "J/TOK", "NET", "",
)  # fmt: skip
_MOST_RUNS = len(ascii_uppercase)


@click.command("compare")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION SESSION...")
@click.option("--json", "as_json", is_flag=True, help="One object: runs, differences, loads.")
def command(sessions: tuple[str, ...], as_json: bool) -> None:
    """Sessions side by side, load by load; the first is what the others are measured by.

    What makes them unlike (another model, other requests, another vLLM, another way of measuring)
    is said first. Of several steps at one load the last stands in which the client was not the
    limit.
    """
    folders = [find_session(session) for session in sessions]
    if len(folders) < 2:
        raise UsageError("compare wants two sessions or more; see gpu-dash sessions list")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UsageError("compare: one session is named twice; name different ones")
    if len(folders) > _MOST_RUNS:
        raise UsageError(f"compare takes {_MOST_RUNS} sessions at most; name fewer")
    comparison = compare([read_run(folder) for folder in folders])
    if as_json:
        print_json(msgspec.to_builtins(comparison))
    else:
        _print(comparison)


def _print(comparison: Comparison) -> None:
    legend = zip(ascii_uppercase, comparison.runs, strict=False)
    words.print_table([_LEGEND, *(_legend_row(letter, run) for letter, run in legend)])
    click.echo()
    for difference in comparison.differences:
        click.echo(strip_controls(difference.sentence))
    if not comparison.differences:
        click.echo("the same requests, server and way of measuring, as far as was recorded")
    click.echo()
    if not comparison.loads:
        click.echo("no step has ended in any of them: there is nothing to compare yet")
        return
    rows = [row for load in comparison.loads for row in _load_rows(load)]
    words.print_table([_HEAD, *rows])
    for line in _rules(comparison.loads):
        click.echo(line)


def _legend_row(letter: str, run: RunHead) -> tuple[str, ...]:
    best = run.best_output_tokens_per_s
    at = words.load(run.best_concurrency, run.best_request_rate)
    return (
        letter,
        run.name,
        _cards(run),
        run.model or words.NOT_OFFERED,
        run.vllm_version or words.NOT_OFFERED,
        run.profile or words.NOT_OFFERED,
        words.NOT_OFFERED if best is None else f"{best:.0f} tok/s at {at}",
        words.value(run.knee_concurrency),
        words.passed(run.passed),
        run.session,
    )


def _cards(run: RunHead) -> str:
    """The cards and the power limit that was in force on them."""
    if not run.gpus:
        return "none were read"
    limits = sorted({limit for limit in run.power_limit_watts if limit is not None})
    text = " and ".join(f"{limit:.0f}" for limit in limits)
    return words.cards(run.gpus) + (f" at {text} W" if text else "")


def _load_rows(load: LoadRow) -> Iterator[tuple[str, ...]]:
    name = words.load(load.concurrency, load.request_rate)
    for letter, run in zip(ascii_uppercase, load.runs, strict=False):
        if run is None:
            empty = [words.NOT_OFFERED] * (len(_HEAD) - 3)
            yield (name, letter, *empty, "not run")
        else:
            yield (name, letter, *_figures(run), ", ".join(_remarks(run)))
        name = ""


def _figures(run: RunAtLoad) -> tuple[str, ...]:
    step = run.step
    return (
        words.value(step.output_tokens_per_s, digits=1),
        words.value(run.ratio, digits=2),
        words.milliseconds(step.ttft_p50_s),
        words.milliseconds(step.ttft_p99_s),
        words.milliseconds(step.tpot_p50_s),
        words.value(step.peak_temperature_celsius, " °C"),
        words.value(step.throttle_thermal_s, " s", digits=1),
        words.value(step.min_sm_clock_mhz, " MHz"),
        words.value(step.joules_per_output_token, digits=2),
        words.value(step.net_joules_per_output_token, digits=2),
    )


def _remarks(run: RunAtLoad) -> Iterator[str]:
    step = run.step
    if step.client_bound:
        yield "client-bound"
    if step.requests_failed:
        yield f"{step.requests_failed} of {step.requests_ok + step.requests_failed} failed"
    if run.is_cut_short:
        yield f"ended after {step.duration_s:.1f} s"
    if run.repeats > 1:
        lowest, highest = run.lowest_output_tokens_per_s, run.highest_output_tokens_per_s
        yield f"last of {run.repeats}: {lowest:.1f} to {highest:.1f} tok/s"


def _rules(loads: Sequence[LoadRow]) -> Iterator[str]:
    """What a reader must know of the marks that the table has."""
    runs = [run for load in loads for run in load.runs if run is not None]
    if any(run.step.client_bound for run in runs):
        yield "client-bound: the client was the limit, not the server, so there is no ratio"
    if any(run.repeats > 1 for run in runs):
        yield "last of N: a load that ran several times; its last step stands (not client-bound)"
