"""Where throughput flattens, and where heat is the reason."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_dash.analysis.knee import gain_per_doubling, knee, thermal_knee
from gpu_dash.model.load import StepResult


def step(concurrency: int | None, throughput: float, **fields: Any) -> StepResult:
    usual: dict[str, Any] = {"step": concurrency or 0, "time_s": 0, "duration_s": 1, "elapsed_s": 1}
    return StepResult(
        **{
            **usual,
            "concurrency": concurrency,
            "output_tokens_per_s": throughput,
            **fields,
        }
    )


def steps(*pairs: tuple[int, float]) -> list[StepResult]:
    return [step(concurrency, throughput) for concurrency, throughput in pairs]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], None),
        ([(1, 100)], None),
        ([(1, 100), (2, 200), (4, 400)], None),
        ([(1, 100), (2, 200), (4, 210)], 2),
        ([(1, 100), (2, 109), (4, 400)], 1),
        ([(1, 100), (2, 110.0001), (4, 122)], None),
        # 25 % for three doublings are 8 % for each
        ([(1, 100), (8, 800), (64, 1000)], 8),
        # 15 % for half a doubling and a bit are more than 10 % per doubling
        ([(8, 800), (12, 860)], None),
        ([(8, 800), (12, 840)], 8),
        ([(1, 100), (2, 80), (4, 200)], 1),
        ([(4, 400), (1, 100), (2, 390)], 2),
        ([(1, 0), (2, 0), (4, 100), (8, 100)], 4),
        ([(1, 100), (2, 0)], 1),
    ],
)
def test_the_lowest_step_from_which_the_gain_is_flat(
    pairs: list[tuple[int, float]], expected: int | None
) -> None:
    found = knee(steps(*pairs))
    assert (found.concurrency if found else None) == expected


def test_steps_in_which_the_client_was_the_limit_do_not_count() -> None:
    ramp = [step(1, 100), step(2, 101, client_bound=True), step(4, 400), step(8, 400)]
    found = knee(ramp)
    assert found is not None
    assert found.concurrency == 4


def test_of_two_steps_with_the_same_load_the_later_one_stands() -> None:
    ramp = [step(1, 100), step(2, 100), step(4, 400), step(2, 200)]
    assert knee(ramp) is None


def test_an_open_loop_is_judged_by_its_rate() -> None:
    ramp = [step(None, 100 * rate, request_rate=rate) for rate in (1.0, 2.0)]
    ramp.append(step(None, 205, request_rate=4.0))
    found = knee(ramp)
    assert found is not None
    assert found.request_rate == 2.0


def test_gain_per_doubling_has_nothing_to_say_without_more_load() -> None:
    assert gain_per_doubling(step(4, 100), step(2, 50)) is None
    assert gain_per_doubling(step(4, 100), step(8, 150)) == pytest.approx(0.5)


def hot(concurrency: int, throughput: float, seconds: float | None) -> StepResult:
    return step(concurrency, throughput, throttle_thermal_s=seconds)


@pytest.mark.parametrize(
    ("ramp", "expected"),
    [
        ([hot(1, 100, 0), hot(2, 200, 0), hot(4, 150, 5)], 4),
        # flat, but no card throttled
        ([hot(1, 100, 0), hot(2, 100, 0)], None),
        # throttled, but the throughput still grew
        ([hot(1, 100, 0), hot(2, 190, 0.5), hot(4, 195, 5)], 4),
        ([hot(1, 100, 0), hot(2, 190, 0.5)], None),
        # hot from the first step on: what it cost shows from the second on
        ([hot(1, 100, 5)], None),
        ([hot(1, 100, 5), hot(2, 90, 5)], 2),
        ([hot(1, 100, None), hot(2, 90, None)], None),
    ],
)
def test_the_first_step_whose_throughput_a_throttle_cut(
    ramp: list[StepResult], expected: int | None
) -> None:
    found = thermal_knee(ramp)
    assert (found.concurrency if found else None) == expected


def test_requests_in_flight_and_requests_per_second_are_not_compared() -> None:
    closed = steps((1, 100), (2, 200), (4, 210))
    opened = [step(None, tokens, request_rate=rate) for rate, tokens in ((1.0, 90), (3.0, 95))]
    found = knee([closed[0], opened[0], closed[1], opened[1], closed[2]])
    assert found is closed[1]
    assert knee(opened) is opened[0]
