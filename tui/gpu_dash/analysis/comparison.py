"""Runs side by side, load by load: the same requests on other cards, or before and after a
change to the box.

* A **load** is what a step asked for: requests in flight (closed loop) or requests per second
  (open loop). Steps are set side by side by their load, never by their number; a load that only
  one run has stays in the table.
* Of several steps at one load the **latest** stands, as for the knee: the box is warm by then. One
  in which the client was the limit stands only where there is no other. :attr:`RunAtLoad.repeats`
  and the range of throughput over the repeats say what was left out.
* The **ratio** is a step's throughput by that of the first run at the same load. It is empty where
  the client was the limit in either: such a step does not measure the server.

What makes the runs unlike is :mod:`~gpu_dash.analysis.likeness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from gpu_dash.analysis.knee import knee, load_of
from gpu_dash.analysis.likeness import Difference, differences
from gpu_dash.analysis.run import Run, names_of
from gpu_dash.model.load import StepResult

CUT_RATIO = 0.9
"""A window shorter than this share of the planned one was ended before its time."""

Load = tuple[bool, float]
"""Whether it is an open loop, and how much; sorts closed loops first."""


class RunAtLoad(msgspec.Struct, frozen=True, kw_only=True):
    """One run at one load."""

    step: StepResult
    """The step that stands for it."""
    ratio: float | None = None
    """Its throughput by the first run's; ``None`` where that cannot be said."""
    repeats: int = 1
    """Steps that the run has at this load."""
    lowest_output_tokens_per_s: float
    """Over the repeats, those in which the client was the limit left out where others are."""
    highest_output_tokens_per_s: float
    is_cut_short: bool = False
    """Its window was ended before its time."""


class LoadRow(msgspec.Struct, frozen=True, kw_only=True):
    """All runs at one load."""

    concurrency: int | None
    request_rate: float | None
    runs: tuple[RunAtLoad | None, ...]
    """In the order of the runs; ``None``: that run was not asked for this load."""


class RunHead(msgspec.Struct, frozen=True, kw_only=True):
    """What the legend says of a run."""

    name: str
    session: str
    folder: str
    label: str
    profile: str
    model: str
    vllm_version: str
    gpus: tuple[str, ...]
    power_limit_watts: tuple[float | None, ...]
    best_output_tokens_per_s: float | None
    """Of the steps in which the server was the limit."""
    best_concurrency: int | None
    best_request_rate: float | None
    knee_concurrency: int | None
    passed: bool | None
    """The verdict's outcome; ``None``: not judged."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Runs side by side."""

    runs: tuple[RunHead, ...]
    """The first is what the others are measured by."""
    differences: tuple[Difference, ...]
    loads: tuple[LoadRow, ...]
    """Closed loops by concurrency, then open loops by rate."""


def compare(runs: Sequence[Run]) -> Comparison:
    """Set runs side by side; the first is what the others are measured by."""
    by_load = [_standing(run) for run in runs]
    loads = sorted({load for standing in by_load for load in standing})
    return Comparison(
        runs=tuple(_head(run, name) for run, name in zip(runs, names_of(runs), strict=True)),
        differences=differences(runs),
        loads=tuple(_row(load, [standing.get(load) for standing in by_load]) for load in loads),
    )


def _row(load: Load, found: Sequence[RunAtLoad | None]) -> LoadRow:
    is_open, amount = load
    first = found[0]
    return LoadRow(
        concurrency=None if is_open else int(amount),
        request_rate=amount if is_open else None,
        runs=tuple(
            None if run is None else msgspec.structs.replace(run, ratio=_ratio(run, first))
            for run in found
        ),
    )


def _ratio(run: RunAtLoad, first: RunAtLoad | None) -> float | None:
    if first is None or first.step.client_bound or run.step.client_bound:
        return None
    before = first.step.output_tokens_per_s
    return run.step.output_tokens_per_s / before if before > 0 else None


def _standing(run: Run) -> dict[Load, RunAtLoad]:
    """The step that stands for each load of a run."""
    steps_at: dict[Load, list[StepResult]] = {}
    for step in run.steps:
        amount = load_of(step)
        if amount:
            steps_at.setdefault((step.concurrency is None, amount), []).append(step)
    return {load: _run_at_load(run, steps) for load, steps in steps_at.items()}


def _run_at_load(run: Run, steps: Sequence[StepResult]) -> RunAtLoad:
    judged = [step for step in steps if not step.client_bound] or steps
    throughputs = [step.output_tokens_per_s for step in judged]
    return RunAtLoad(
        step=judged[-1],
        repeats=len(steps),
        lowest_output_tokens_per_s=min(throughputs),
        highest_output_tokens_per_s=max(throughputs),
        is_cut_short=_is_cut_short(run, judged[-1]),
    )


def _is_cut_short(run: Run, step: StepResult) -> bool:
    plan = run.plan
    if plan is None or plan.requests is not None:
        return False
    return step.duration_s < plan.step_s * CUT_RATIO


def _head(run: Run, name: str) -> RunHead:
    best = _best(run.steps)
    flat = knee(run.steps)
    return RunHead(
        name=name,
        session=run.session,
        folder=run.folder,
        label=run.label,
        profile=run.profile,
        model=run.model,
        vllm_version=run.vllm_version,
        gpus=run.gpus,
        power_limit_watts=run.power_limit_watts,
        best_output_tokens_per_s=None if best is None else best.output_tokens_per_s,
        best_concurrency=None if best is None else best.concurrency,
        best_request_rate=None if best is None else best.request_rate,
        knee_concurrency=None if flat is None else flat.concurrency,
        passed=run.passed,
    )


def _best(steps: Iterable[StepResult]) -> StepResult | None:
    judged = (step for step in steps if not step.client_bound and step.output_tokens_per_s > 0)
    return max(judged, key=lambda step: step.output_tokens_per_s, default=None)
