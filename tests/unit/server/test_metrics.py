"""The metrics page: names of several versions, several engines, missing values."""

from __future__ import annotations

import pytest

from gpu_dash.model.server import ServerMetrics
from gpu_dash.server.metrics import parse_metrics

PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.4
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="m"} 1.5e+06
vllm:generation_tokens_created{engine="0",model_name="m"} 1.7e+09
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="m"} 9.0
vllm:iteration_tokens_total_count{engine="0",model_name="m"} 77.0
"""


def test_engines_are_summed_and_shares_averaged() -> None:
    metrics = parse_metrics(PAGE)
    assert metrics.running_requests == 7
    assert metrics.kv_cache_usage == pytest.approx(0.3)
    assert metrics.generation_tokens_total == 1_500_000
    assert metrics.iterations_total == 77


def test_a_value_that_the_page_does_not_have_is_missing_and_not_zero() -> None:
    assert parse_metrics(PAGE).waiting_requests is None
    assert parse_metrics("") == ServerMetrics()


def test_the_old_name_of_the_kv_cache_is_known() -> None:
    assert parse_metrics('vllm:gpu_cache_usage_perc{model_name="m"} 0.5\n').kv_cache_usage == 0.5


def test_a_page_that_is_no_metrics_page_has_none() -> None:
    assert parse_metrics("<html>not found</html>") == ServerMetrics()
