"""A step's numbers by their definitions."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_dash.analysis.step_gpus import StepGpus
from gpu_dash.analysis.steps import meets, summarize_step
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.histogram import Histogram
from gpu_dash.model.load import Outcome, RequestRecord, Slo, StepResult

ANCHOR = ClockAnchor(monotonic=1000.0, utc=1.8e9)
OPENED, CLOSED = 1010.0, 1020.0


def request(**fields: Any) -> RequestRecord:
    """A request that was sent and answered inside the window."""
    usual: dict[str, Any] = {
        "request": 0,
        "step": 1,
        "concurrency": 2,
        "scheduled": 1011.0,
        "sent": 1011.0,
        "ttft_s": 0.5,
        "tpot_s": 0.1,
        "e2e_s": 1.4,
        "prompt_tokens": 100,
        "output_tokens": 10,
        "tokens_in_window": 10,
        "counted": True,
    }
    return RequestRecord(**{**usual, **fields})


def result_of(*requests: RequestRecord, **fields: Any) -> StepResult:
    usual: dict[str, Any] = {
        "step": 1,
        "concurrency": 2,
        "requests": requests,
        "opened_at": OPENED,
        "closed_at": CLOSED,
        "anchor": ANCHOR,
        "gaps": {},
    }
    return summarize_step(**{**usual, **fields})


def test_throughput_counts_the_tokens_of_all_requests_that_arrived_in_the_window() -> None:
    result = result_of(
        request(),
        request(sent=1005.0, counted=False, tokens_in_window=4),
        request(outcome=Outcome.DISCONNECTED, e2e_s=None, output_tokens=6, tokens_in_window=6),
        request(sent=1019.5, tokens_in_window=0),
    )
    assert result.output_tokens_per_s == pytest.approx(20 / 10)
    assert result.output_tokens == 10 + 10 + 6 + 10


def test_latency_is_that_of_counted_requests_that_came_out_ok() -> None:
    result = result_of(
        request(ttft_s=0.2, tpot_s=0.01, e2e_s=1.0),
        request(ttft_s=0.4, tpot_s=0.03, e2e_s=2.0),
        request(ttft_s=9.0, tpot_s=9.0, e2e_s=9.0, counted=False),
        request(ttft_s=0.001, tpot_s=None, e2e_s=None, outcome=Outcome.ERROR_IN_STREAM),
    )
    assert result.ttft_p50_s == pytest.approx(0.3)
    assert result.ttft_p90_s == pytest.approx(0.38)
    assert result.tpot_p50_s == pytest.approx(0.02)
    assert result.e2e_p99_s == pytest.approx(1.99)


def test_requests_are_counted_by_their_outcome_in_the_window_or_not() -> None:
    result = result_of(
        request(),
        request(counted=False),
        request(outcome=Outcome.TIMEOUT),
        request(outcome=Outcome.CANCELLED, counted=False),
    )
    assert (result.requests_ok, result.requests_failed) == (2, 2)


def test_elapsed_is_from_the_first_send_to_the_last_token() -> None:
    result = result_of(
        request(sent=1006.0, e2e_s=1.0),
        request(sent=1019.0, e2e_s=5.5),
        request(sent=1019.9, e2e_s=None, outcome=Outcome.TIMEOUT),
    )
    assert result.elapsed_s == pytest.approx(1024.5 - 1006.0)
    assert (result.time_s, result.duration_s) == (10.0, 10.0)


def test_prompt_throughput_counts_prompts_whose_first_token_came_in_the_window() -> None:
    result = result_of(
        request(prompt_tokens=100),
        request(prompt_tokens=200, sent=1009.8, ttft_s=0.5, counted=False),
        request(prompt_tokens=400, sent=1009.0, ttft_s=0.5, counted=False),
        request(prompt_tokens=800, sent=1019.8, ttft_s=0.5),
        request(prompt_tokens=1600, ttft_s=None, outcome=Outcome.TIMEOUT),
    )
    assert result.prompt_tokens_per_s == pytest.approx(30.0)


def test_gaps_become_inter_token_latencies() -> None:
    gaps = Histogram()
    for gap in [0.010] * 50 + [0.020] * 45 + [0.200] * 5:
        gaps.add(gap)
    result = result_of(request(), gaps=gaps.counts)
    assert result.itl_p50_s == pytest.approx(0.010, rel=1e-3)
    assert result.itl_p90_s == pytest.approx(0.020, rel=1e-3)
    assert result.itl_p99_s == pytest.approx(0.200, rel=1e-3)


def test_goodput_counts_what_met_every_limit() -> None:
    requests = (
        request(ttft_s=0.4, tpot_s=0.02),
        request(ttft_s=0.6, tpot_s=0.02),
        request(ttft_s=0.4, tpot_s=0.04),
        request(ttft_s=0.4, tpot_s=0.02, counted=False),
        request(ttft_s=0.4, tpot_s=0.02, outcome=Outcome.CUT),
    )
    assert result_of(*requests, slo=Slo(ttft_s=0.5, tpot_s=0.03)).goodput_per_s == 0.1
    assert result_of(*requests).goodput_per_s is None


@pytest.mark.parametrize(
    ("fields", "slo", "expected"),
    [
        ({"ttft_s": 0.5}, Slo(ttft_s=0.5), True),
        ({"ttft_s": None}, Slo(ttft_s=0.5), False),
        ({"e2e_s": 3.0}, Slo(e2e_s=2.0), False),
        ({"e2e_s": None}, Slo(e2e_s=2.0), False),
        ({"tpot_s": None, "output_tokens": 1}, Slo(tpot_s=0.1), True),
        ({"tpot_s": None, "output_tokens": 5}, Slo(tpot_s=0.1), False),
        ({"ttft_s": 9.0}, Slo(), True),
    ],
)
def test_a_limit_without_a_value_is_not_met(
    fields: dict[str, Any], slo: Slo, expected: bool
) -> None:
    assert meets(request(**fields), slo) is expected


def test_joules_per_token_are_those_of_the_window() -> None:
    gpus = StepGpus(peak_temperature_celsius=71.0, energy_joules=500.0, throttle_thermal_s=1.5)
    result = result_of(request(), request(sent=1019.9, tokens_in_window=0), gpus=gpus)
    assert result.energy_joules == 500.0
    assert result.joules_per_output_token == pytest.approx(50.0)
    assert (result.peak_temperature_celsius, result.throttle_thermal_s) == (71.0, 1.5)


def test_a_step_in_which_nothing_came_back_has_no_latency_and_no_invented_number() -> None:
    result = result_of(
        request(
            outcome=Outcome.REFUSED,
            ttft_s=None,
            tpot_s=None,
            e2e_s=None,
            prompt_tokens=None,
            output_tokens=0,
            tokens_in_window=0,
        ),
        gpus=StepGpus(energy_joules=10.0),
    )
    assert result.output_tokens_per_s == 0.0
    assert result.elapsed_s == pytest.approx(CLOSED - 1011.0)
    for name in ("ttft_p50_s", "itl_p50_s", "tpot_p50_s", "e2e_p50_s", "prompt_tokens_per_s"):
        assert getattr(result, name) is None, name
    assert result.joules_per_output_token is None


def test_a_step_without_a_request_is_empty() -> None:
    result = result_of()
    assert (result.requests_ok, result.requests_failed, result.output_tokens) == (0, 0, 0)
    assert result.elapsed_s == result.duration_s == 10.0


@pytest.mark.parametrize(
    ("energy_joules", "idle_watts", "net"),
    [(1000.0, 60.0, 20.0), (1000.0, None, None), (None, 60.0, None), (1000.0, 120.0, 0.0)],
)
def test_energy_per_token_is_also_given_net_of_what_idle_cards_draw(
    energy_joules: float | None, idle_watts: float | None, net: float | None
) -> None:
    result = result_of(
        request(tokens_in_window=20),
        gpus=StepGpus(energy_joules=energy_joules),
        idle_watts=idle_watts,
    )
    assert result.net_joules_per_output_token == net
