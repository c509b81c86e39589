"""Ticks made again from requests."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gpu_dash.model.load import Outcome, RequestRecord
from gpu_dash.record.ticks import INTERVAL_S, ticks_of


def request(sent: float, **fields: Any) -> tuple[float, RequestRecord]:
    usual: dict[str, Any] = {"ttft_s": 0.25, "tpot_s": 0.01, "e2e_s": 2.25, "output_tokens": 200}
    record = RequestRecord(
        request=0, step=1, concurrency=1, scheduled=sent, sent=sent, **{**usual, **fields}
    )
    return sent + (record.e2e_s or fields.get("ended", 0.0)), record


def test_tokens_are_spread_between_the_first_and_the_last() -> None:
    ticks = ticks_of([request(10.0)])
    assert [(tick.at, tick.in_flight, tick.output_tokens) for tick in ticks] == [
        (10.5, 1, 25),
        (11.0, 1, 50),
        (11.5, 1, 50),
        (12.0, 1, 50),
        (12.5, 1, 25),
        (13.0, 0, 0),
    ]
    assert ticks[0].ttft_p50_s == 0.25
    assert ticks[1].ttft_p50_s is None
    assert ticks[1].itl_p50_s == 0.01
    assert [tick.requests_ok for tick in ticks] == [0, 0, 0, 0, 1, 0]


def test_no_token_is_lost_or_invented() -> None:
    chance = random.Random(3)
    requests = [
        request(
            chance.random() * 20,
            ttft_s=0.1 + chance.random(),
            e2e_s=1.2 + chance.random() * 5,
            output_tokens=chance.randint(1, 99),
        )
        for _ in range(200)
    ]
    ticks = ticks_of(requests)
    assert sum(tick.output_tokens for tick in ticks) == sum(r.output_tokens for _, r in requests)
    assert sum(tick.requests_ok for tick in ticks) == 200
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)


@pytest.mark.parametrize(
    "sent", [10.0, 10.1, 10.49, 10.25, 10.3], ids=lambda sent: f"sent at {sent}"
)
def test_a_single_token_comes_once(sent: float) -> None:
    ticks = ticks_of([request(sent, ttft_s=0.2, e2e_s=0.2, tpot_s=None, output_tokens=1)])
    assert sum(tick.output_tokens for tick in ticks) == 1


def test_failures_and_silent_requests_count_until_they_were_reported() -> None:
    record = RequestRecord(
        request=0, step=1, concurrency=1, scheduled=4.0, sent=4.0, outcome=Outcome.TIMEOUT
    )
    ticks = ticks_of([(5.25, record)])
    assert [(tick.at, tick.in_flight, tick.requests_failed) for tick in ticks] == [
        (4.5, 1, 0),
        (5.0, 1, 0),
        (5.5, 1, 1),
        (6.0, 0, 0),
    ]
    assert all(tick.output_tokens == 0 for tick in ticks)


def test_a_pause_is_silent_after_one_empty_tick() -> None:
    ticks = ticks_of([request(0.0), request(60.0)])
    assert [tick.at for tick in ticks if tick.in_flight == 0] == [3.0, 63.0]
    assert len(ticks) == 12


def test_no_requests_no_ticks() -> None:
    assert ticks_of([]) == []


def test_all_intervals_are_alike() -> None:
    assert {tick.interval_s for tick in ticks_of([request(0.0)])} == {INTERVAL_S}
