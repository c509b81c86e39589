"""Whether a run was all right: three conditions, each true, false or not judged.

==================== ==========================================================================
``every_gpu_worked`` every visible card of the server was busy under load, and none was lost
``throughput_held``  no later step fell under 90 % of the best one
``temperature_margin`` no card came within 3 °C of the nearest of its limits or throttled
                     thermally
==================== ==========================================================================

A condition without the data to judge it (no cards, one step) is ``passed=None`` and does not
fail the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from gpu_dash.analysis.cards import CardRecord
from gpu_dash.analysis.knee import load_of, of_one_kind
from gpu_dash.model.load import StepResult

WORKED_PERCENT = 5.0
"""A card whose utilisation never reached this under load has not worked: a display or another
process's context shows up as one or two percent."""
HELD_RATIO = 0.90
MARGIN_CELSIUS = 3.0


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One of the three, in the words of ``run --json``."""

    name: str
    passed: bool | None = None
    """``None``: not judged."""
    detail: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The whole: it failed if a judged condition failed."""

    passed: bool | None = None
    """``None``: nothing could be judged, because the run itself came to nothing."""
    conditions: tuple[Condition, ...]


def not_judged(reason: str) -> Verdict:
    """The verdict on a run that came to nothing: the server failed, no request succeeded."""
    names = ("every_gpu_worked", "throughput_held", "temperature_margin")
    conditions = tuple(Condition(name=name, passed=None, detail=reason) for name in names)
    return Verdict(passed=None, conditions=conditions)


def judge(
    steps: Sequence[StepResult],
    cards: Iterable[CardRecord],
    *,
    visible_gpus: Collection[int] | None = None,
) -> Verdict:
    """Judge a run.

    Args:
        steps: in the order in which they ran.
        cards: what the cards did under load; empty without readings.
        visible_gpus: the cards that the server may use; if it is not known which, an idle card
            says nothing about it.
    """
    chosen = [card for card in cards if visible_gpus is None or card.gpu in visible_gpus]
    unread = sorted(set(visible_gpus or ()) - {card.gpu for card in chosen})
    conditions = (
        _every_gpu_worked(chosen, unread, is_known=visible_gpus is not None),
        _throughput_held(steps),
        _temperature_margin(chosen, unread),
    )
    return Verdict(
        passed=all(condition.passed is not False for condition in conditions),
        conditions=conditions,
    )


def _every_gpu_worked(
    cards: Sequence[CardRecord], unread: Sequence[int], *, is_known: bool
) -> Condition:
    name = "every_gpu_worked"
    if not cards:
        return Condition(name=name, passed=None, detail="no GPU was read under load")
    lost = [card.gpu for card in cards if card.lost]
    if lost:
        return Condition(name=name, passed=False, detail=f"{_gpus(lost)} lost")
    busy = {card.gpu: card.peak_utilization_percent for card in cards}
    idle = [gpu for gpu, peak in busy.items() if peak is not None and peak < WORKED_PERCENT]
    if idle and not is_known:
        return Condition(
            name=name,
            passed=None,
            detail=f"{_gpus(idle)} idle, and it is not known which cards the server uses",
        )
    if idle:
        return Condition(
            name=name,
            passed=False,
            detail=f"{_gpus(idle)} never above {WORKED_PERCENT:g} % utilisation under load",
        )
    unknown = sorted([*unread, *(gpu for gpu, peak in busy.items() if peak is None)])
    if unknown:
        return Condition(
            name=name, passed=None, detail=f"{_gpus(unknown)}: no utilisation was read"
        )
    return Condition(name=name, passed=True, detail=f"{_gpus(sorted(busy))} busy under load")


def _throughput_held(steps: Sequence[StepResult]) -> Condition:
    name = "throughput_held"
    judged = of_one_kind(step for step in steps if not step.client_bound and load_of(step))
    if len(judged) < 2:
        return Condition(
            name=name, passed=None, detail="fewer than two steps in which the server was the limit"
        )
    best = max(judged, key=lambda step: step.output_tokens_per_s)
    if best.output_tokens_per_s <= 0:
        return Condition(name=name, passed=None, detail="no token arrived in any window")
    for later in judged[judged.index(best) + 1 :]:
        # A step with less load than the best one was asked for less.
        asked_for_less = (load_of(later) or 0) < (load_of(best) or 0)
        if not asked_for_less and later.output_tokens_per_s < best.output_tokens_per_s * HELD_RATIO:
            share = later.output_tokens_per_s / best.output_tokens_per_s * 100
            return Condition(
                name=name,
                passed=False,
                detail=f"{_step(later)} is {share:.0f} % of the best, {_step(best)}",
            )
    return Condition(name=name, passed=True, detail=f"best: {_step(best)}")


def _temperature_margin(cards: Sequence[CardRecord], unread: Sequence[int]) -> Condition:
    name = "temperature_margin"
    if not cards:
        return Condition(name=name, passed=None, detail="no GPU was read under load")
    throttled = [card for card in cards if card.throttled_thermally]
    if throttled:
        words = ", ".join(
            f"gpu {card.gpu}"
            + (f" for {card.throttle_thermal_s:.1f} s" if card.throttle_thermal_s else "")
            for card in throttled
        )
        return Condition(name=name, passed=False, detail=f"throttled thermally: {words}")
    margins = {
        card.gpu: card.min_headroom_celsius
        for card in cards
        if card.min_headroom_celsius is not None
    }
    nearest = min(margins, key=lambda gpu: margins[gpu], default=None)
    if nearest is not None and margins[nearest] <= MARGIN_CELSIUS:
        return Condition(
            name=name,
            passed=False,
            detail=f"gpu {nearest} came within {margins[nearest]:g} °C of its limit",
        )
    unknown = sorted({*unread, *(card.gpu for card in cards)} - margins.keys())
    if unknown or nearest is None:
        return Condition(
            name=name, passed=None, detail=f"{_gpus(unknown)}: the limits are not known"
        )
    return Condition(
        name=name,
        passed=True,
        detail=f"nearest: gpu {nearest}, {margins[nearest]:g} °C below its limit",
    )


def _gpus(indexes: Sequence[int]) -> str:
    return "gpu " + ", ".join(str(index) for index in indexes)


def _step(step: StepResult) -> str:
    load = f"{step.concurrency}" if step.concurrency is not None else f"{step.request_rate:g}/s"
    return f"{step.output_tokens_per_s:.0f} tok/s at {load}"
