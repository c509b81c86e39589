"""Numbers of tokens by distribution."""

from __future__ import annotations

import random
import statistics

import pytest

from gpu_dash.load.lengths import draw_tokens
from gpu_dash.model.errors import UsageError
from gpu_dash.model.token_spread import SpreadKind, TokenSpread, parse_token_spread


def drawn(text: str, count: int = 20_000) -> list[int]:
    spread, dice = parse_token_spread(text), random.Random(1)
    return [draw_tokens(spread, dice) for _ in range(count)]


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [
        ("uniform:100,300", 200, 200 / 12**0.5),
        ("normal:200,40", 200, 40),
        ("lognormal:200,100", 200, 100),
        ("lognormal:200,400", 200, 400),
    ],
)
def test_the_numbers_have_the_mean_and_the_deviation_that_were_written(
    text: str, mean: float, deviation: float
) -> None:
    numbers = drawn(text)
    assert statistics.fmean(numbers) == pytest.approx(mean, rel=0.03)
    assert statistics.pstdev(numbers) == pytest.approx(deviation, rel=0.2)


def test_both_ends_of_a_uniform_distribution_come_and_nothing_beyond() -> None:
    assert set(drawn("uniform:3,6", 400)) == {3, 4, 5, 6}
    assert set(drawn("uniform:7,7", 9)) == {7}


def test_nobody_is_asked_for_less_than_a_token() -> None:
    assert min(drawn("normal:2,40")) == 1
    assert min(drawn("lognormal:1,9")) == 1


def test_what_is_written_is_what_is_read() -> None:
    assert parse_token_spread(" normal:200,50.5 ") == TokenSpread(
        kind=SpreadKind.NORMAL, mean=200, deviation=50.5
    )


@pytest.mark.parametrize(
    "text",
    ["", "256", "normal", "normal:1", "normal:1,2,3", "zipf:1,2", "normal:-5,2", "normal:0,2",
     "uniform:9,3", "uniform:0,3", "uniform:1,99999999999", "normal:nan,1", "normal:1e3,2"],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError, match=r"write a number|asks for 1|the least comes first"):
        parse_token_spread(text)
