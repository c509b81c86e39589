"""When tokens came, and what a throttle took from them."""

from __future__ import annotations

import pytest

from gpu_dash.analysis.throttle_cost import ThrottleCost, throttle_cost
from gpu_dash.analysis.token_flow import TokenFlow, spread
from gpu_dash.model.load import Outcome, RequestRecord


def request(first: float, last: float, tokens: int) -> RequestRecord:
    return RequestRecord(
        request=1,
        step=1,
        concurrency=1,
        scheduled=first - 0.5,
        sent=first - 0.5,
        ttft_s=0.5,
        e2e_s=last - first + 0.5,
        output_tokens=tokens,
    )


def flow(*pieces: tuple[float, float, int]) -> TokenFlow:
    made = TokenFlow()
    for first, last, tokens in pieces:
        made.add(request(first, last, tokens), last)
    return made


def test_tokens_are_spread_evenly_between_the_first_and_the_last() -> None:
    made = flow((10.5, 12.5, 200))
    assert list(made.per_second()) == [(10.0, 50.0), (11.0, 100.0), (12.0, 50.0)]
    assert made.tokens(11.0, 11.5) == pytest.approx(50.0)
    assert made.tokens(0.0, 100.0) == pytest.approx(200.0)


def test_seconds_without_a_token_are_told() -> None:
    assert [tokens for _, tokens in flow((1.0, 2.0, 7), (4.0, 5.0, 7)).per_second()] == [7, 0, 0, 7]


def test_one_token_comes_at_once_and_none_never() -> None:
    assert list(spread(1, 3.7, 3.7, 0.5)) == [(7, 1)]
    assert list(spread(0, 3.0, 9.0, 0.5)) == []


def test_a_request_without_a_token_adds_none() -> None:
    made = TokenFlow()
    failed = RequestRecord(
        request=1, step=1, concurrency=1, scheduled=1.0, sent=1.0, outcome=Outcome.REFUSED
    )
    made.add(failed, 1.1)
    assert list(made.per_second()) == []


STEADY = flow((0.0, 60.0, 6000), (60.0, 80.0, 1000), (80.0, 100.0, 2000))
"""100 tokens/s, 50 from second 60 to 80, then 100 again."""


@pytest.mark.parametrize(
    ("throttle", "windows", "throttled", "before", "during"),
    [
        ((60.0, 80.0), [(0.0, 100.0)], [], 100.0, 50.0),
        # only the time in the same step counts, on either side
        ((60.0, 80.0), [(50.0, 70.0), (70.0, 100.0)], [], 100.0, 50.0),
        ((60.0, 95.0), [(50.0, 80.0)], [], 100.0, 50.0),
        # it was there when the step began
        ((60.0, 80.0), [(60.0, 100.0)], [], None, 50.0),
        ((60.0, 80.0), [(59.5, 100.0)], [], None, 50.0),
        # another card throttled from second 62 to 78, which leaves 3.5 s at 50 and 2 s at 100
        ((82.0, 84.0), [(60.5, 100.0)], [(62.0, 78.0)], 375 / 5.5, 100.0),
        # too short to be told
        ((60.0, 60.4), [(0.0, 100.0)], [], 100.0, None),
        # outside of the steps
        ((60.0, 80.0), [(0.0, 50.0)], [], None, None),
        ((60.0, 80.0), [], [], None, None),
    ],
)
def test_before_and_during_are_at_one_load(
    throttle: tuple[float, float],
    windows: list[tuple[float, float]],
    throttled: list[tuple[float, float]],
    before: float | None,
    during: float | None,
) -> None:
    cost = throttle_cost(throttle, windows, [*throttled, throttle], STEADY)
    assert cost.during_tokens_per_s == (None if during is None else pytest.approx(during))
    assert cost.before_tokens_per_s == (None if before is None else pytest.approx(before))


def test_the_change_is_relative() -> None:
    assert ThrottleCost(100.0, 75.0).change == pytest.approx(-0.25)
    assert ThrottleCost(None, 75.0).change is None
    assert ThrottleCost(0.0, 75.0).change is None
