"""Where more load no longer brings more throughput, and where heat is the reason.

The gain from one step to the next is taken per doubling of the load, so that steps of any
spacing can be compared: the relative gain divided by log2 of the ratio of their loads. Steps in
which the client was the limit say nothing about the server and are left out; of two steps with
the same load the later one stands. Requests in flight and requests per second are not compared
with each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from gpu_dash.model.load import StepResult

FLAT_GAIN = 0.10
"""A gain per doubling below this is flat."""


def load_of(step: StepResult) -> float | None:
    """How much load a step asked for: requests in flight, or requests per second."""
    return step.request_rate if step.concurrency is None else step.concurrency


def of_one_kind(steps: Iterable[StepResult]) -> list[StepResult]:
    """The steps that can be compared: those with so many requests in flight, or those with so
    many per second, whichever are more."""
    closed: list[StepResult] = []
    opened: list[StepResult] = []
    for step in steps:
        (opened if step.concurrency is None else closed).append(step)
    return opened if len(opened) > len(closed) else closed


def gain_per_doubling(before: StepResult, after: StepResult) -> float | None:
    """Relative gain in throughput from one step to another per doubling of the load; ``None``
    where there is nothing to compare: no throughput before, or no more load after."""
    load_before, load_after = load_of(before), load_of(after)
    if not load_before or not load_after or load_after <= load_before:
        return None
    if before.output_tokens_per_s <= 0:
        return None
    gain = after.output_tokens_per_s / before.output_tokens_per_s - 1
    return gain / math.log2(load_after / load_before)


def knee(steps: Iterable[StepResult]) -> StepResult | None:
    """The lowest step from which the gain to the next is flat; ``None`` if it never is."""
    for before, after in pairwise(_by_load(steps)):
        gain = gain_per_doubling(before, after)
        if gain is not None and gain < FLAT_GAIN:
            return before
    return None


def thermal_knee(steps: Iterable[StepResult]) -> StepResult | None:
    """The first step whose throughput a throttle cut: a card throttled thermally in it, and its
    gain over the next lower step is flat. ``None`` if heat cost nothing that shows."""
    for before, after in pairwise(_by_load(steps)):
        gain = gain_per_doubling(before, after)
        if after.throttle_thermal_s and gain is not None and gain < FLAT_GAIN:
            return after
    return None


def _by_load(steps: Iterable[StepResult]) -> list[StepResult]:
    judged = of_one_kind(step for step in steps if not step.client_bound)
    latest = {load_of(step): step for step in judged}
    return sorted(
        (step for load, step in latest.items() if load), key=lambda step: load_of(step) or 0
    )
