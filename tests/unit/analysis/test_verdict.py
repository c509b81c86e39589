"""The three conditions: true, false, not judged."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpu_dash.analysis.cards import CardRecord, CardWatch
from gpu_dash.analysis.verdict import judge
from gpu_dash.model import events as ev
from gpu_dash.model.gpu import GpuSample, ThrottleKind
from gpu_dash.model.load import LoadState, StepResult


def step(concurrency: int, throughput: float, **fields: Any) -> StepResult:
    usual: dict[str, Any] = {"step": concurrency, "time_s": 0, "duration_s": 1, "elapsed_s": 1}
    return StepResult(
        **{**usual, "concurrency": concurrency, "output_tokens_per_s": throughput, **fields}
    )


def card(gpu: int, **fields: Any) -> CardRecord:
    usual: dict[str, Any] = {
        "peak_utilization_percent": 99.0,
        "min_headroom_celsius": 20.0,
        "throttle_thermal_s": 0.0,
    }
    return CardRecord(gpu=gpu, **{**usual, **fields})


GOOD_STEPS = [step(1, 100), step(2, 200)]


def passed(
    name: str,
    steps: list[StepResult] | None = None,
    cards: list[CardRecord] | None = None,
    visible: tuple[int, ...] | None = None,
) -> bool | None:
    verdict = judge(
        GOOD_STEPS if steps is None else steps,
        [card(0), card(1)] if cards is None else cards,
        visible_gpus=visible,
    )
    found = {condition.name: condition for condition in verdict.conditions}
    assert found[name].detail
    assert verdict.passed is all(c.passed is not False for c in verdict.conditions)
    return found[name].passed


@pytest.mark.parametrize(
    ("cards", "visible", "expected"),
    [
        ([card(0), card(1)], None, True),
        ([card(0), card(1, peak_utilization_percent=2.0)], None, None),
        ([card(0), card(1, peak_utilization_percent=2.0)], (0, 1), False),
        ([card(0), card(1, peak_utilization_percent=0.0)], (0,), True),
        ([card(0), card(1, lost=True)], None, False),
        ([card(0), card(1, lost=True)], (0,), True),
        ([card(0), card(1, peak_utilization_percent=None)], None, None),
        ([card(0)], (0, 1), None),
        ([card(0, peak_utilization_percent=1.0)], (0, 1), False),
        ([], None, None),
        ([], (0, 1), None),
    ],
)
def test_every_visible_card_worked(
    cards: list[CardRecord], visible: tuple[int, ...] | None, expected: bool | None
) -> None:
    assert passed("every_gpu_worked", cards=cards, visible=visible) is expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], None),
        ([step(1, 100)], None),
        ([step(1, 100), step(2, 200)], True),
        ([step(1, 100), step(2, 200), step(4, 181)], True),
        ([step(1, 100), step(2, 200), step(4, 179)], False),
        ([step(1, 100), step(2, 200), step(4, 190), step(8, 100)], False),
        # asked for less, so less came
        ([step(8, 800), step(2, 200)], True),
        # the client was the limit
        ([step(1, 100), step(2, 200), step(4, 20, client_bound=True)], True),
        ([step(1, 100), step(2, 50, client_bound=True)], None),
        ([step(1, 0), step(2, 0)], None),
        ([step(1, 100), step(2, 0)], False),
    ],
)
def test_throughput_did_not_collapse(steps: list[StepResult], expected: bool | None) -> None:
    assert passed("throughput_held", steps=steps) is expected


@pytest.mark.parametrize(
    ("cards", "visible", "expected"),
    [
        ([card(0), card(1)], None, True),
        ([card(0), card(1, min_headroom_celsius=3.0)], None, False),
        ([card(0), card(1, min_headroom_celsius=3.5)], None, True),
        ([card(0), card(1, min_headroom_celsius=-2.0)], (0,), True),
        ([card(0, throttled_thermally=True, throttle_thermal_s=0.4)], None, False),
        ([card(0, throttled_thermally=True, min_headroom_celsius=None)], None, False),
        ([card(0, min_headroom_celsius=None)], None, None),
        ([card(0), card(1, min_headroom_celsius=None)], None, None),
        ([card(0, min_headroom_celsius=1.0), card(1, min_headroom_celsius=None)], None, False),
        ([card(0)], (0, 1), None),
        ([], None, None),
    ],
)
def test_no_card_came_near_its_limit(
    cards: list[CardRecord], visible: tuple[int, ...] | None, expected: bool | None
) -> None:
    assert passed("temperature_margin", cards=cards, visible=visible) is expected


def test_what_is_not_judged_does_not_fail_and_is_null_in_json() -> None:
    verdict = judge([], [])
    assert verdict.passed
    built = msgspec.to_builtins(verdict)
    assert [condition["passed"] for condition in built["conditions"]] == [None, None, None]
    assert [condition["name"] for condition in built["conditions"]] == [
        "every_gpu_worked",
        "throughput_held",
        "temperature_margin",
    ]


# -- what the cards did under load -------------------------------------------------------------


def watch(*events: ev.Event) -> tuple[CardRecord, ...]:
    watched = CardWatch()
    for event in events:
        watched.fold(event)
    return watched.records()


def load(state: LoadState) -> ev.LoadChanged:
    return ev.LoadChanged(at=0.0, state=state)


def sample(**fields: Any) -> ev.GpuSamples:
    return ev.GpuSamples(at=0.0, samples=(GpuSample(gpu=0, **fields),))


def test_a_card_that_was_busy_without_load_has_not_worked() -> None:
    (record,) = watch(
        sample(utilization_percent=100.0, headroom_celsius=1.0),
        load(LoadState.RUNNING),
        sample(utilization_percent=0.0, headroom_celsius=30.0),
        load(LoadState.IDLE),
        sample(utilization_percent=100.0, headroom_celsius=2.0),
    )
    assert record == CardRecord(gpu=0, peak_utilization_percent=0.0, min_headroom_celsius=30.0)


@pytest.mark.parametrize("state", [LoadState.WARMUP, LoadState.RUNNING, LoadState.DRAINING])
def test_extremes_under_load(state: LoadState) -> None:
    (record,) = watch(
        load(state),
        sample(utilization_percent=80.0, headroom_celsius=9.0, throttle_thermal_s=4.0),
        sample(utilization_percent=60.0, headroom_celsius=5.0, throttle_thermal_s=4.5),
        sample(utilization_percent=70.0, headroom_celsius=8.0, throttle_thermal_s=4.75),
    )
    assert record == CardRecord(
        gpu=0,
        peak_utilization_percent=80.0,
        min_headroom_celsius=5.0,
        throttle_thermal_s=0.75,
        throttled_thermally=True,
    )


def throttle(kind: ThrottleKind) -> ev.ThrottleBegan:
    return ev.ThrottleBegan(at=0.0, gpu=0, kind=kind, reasons=("x",))


def test_a_throttle_that_goes_on_when_the_load_begins_counts() -> None:
    began = throttle(ThrottleKind.THERMAL)
    ended = ev.ThrottleEnded(at=1.0, gpu=0, kind=ThrottleKind.THERMAL, began_at=0.0)
    running = load(LoadState.RUNNING)
    assert watch(began, running, sample())[0].throttled_thermally
    assert not watch(began, ended, running, sample())[0].throttled_thermally
    assert watch(running, began, ended, sample())[0].throttled_thermally


def test_a_power_cap_is_no_thermal_throttle() -> None:
    (record,) = watch(load(LoadState.RUNNING), sample(), throttle(ThrottleKind.POWER_CAP), sample())
    assert not record.throttled_thermally


def test_a_lost_card_is_lost_with_or_without_load() -> None:
    lost = ev.GpuReadFailed(at=0.0, gpu=3, call="read", error="GPU is lost", lost=True)
    failed = ev.GpuReadFailed(at=0.0, gpu=4, call="read", error="no permission")
    assert watch(lost, failed) == (CardRecord(gpu=3, lost=True),)
