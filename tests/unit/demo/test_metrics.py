"""The metrics page, read by the parser that everybody uses."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpu_dash.demo.engine import Capacity, Engine
from gpu_dash.demo.metrics import MetricsPage
from gpu_dash.demo.stats import Histogram
from tests.unit.demo.virtual_time import ClosedLoop, request

LABELS = {"engine": "0", "model_name": 'a "tiny" model'}


def samples(page: MetricsPage) -> dict[tuple[str, str], float]:
    """Values by sample name and the one label that tells samples of a family apart."""
    values = {}
    for family in text_string_to_metric_families(page.render().decode()):
        for sample in family.samples:
            if sample.name.startswith("vllm:"):
                assert LABELS.items() <= sample.labels.items()
            rest = {key: text for key, text in sample.labels.items() if key not in LABELS}
            values[sample.name, next(iter(rest.values()), "")] = sample.value
    return values


@pytest.fixture
def loop() -> ClosedLoop:
    return ClosedLoop(Engine(Capacity(max_num_seqs=2)))


def page_of(loop: ClosedLoop) -> MetricsPage:
    return MetricsPage(loop.engine, LABELS["model_name"])


def test_a_page_before_any_request_is_all_zeros(loop: ClosedLoop) -> None:
    values = samples(page_of(loop))
    for name in (
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "prompt_tokens_total",
        "generation_tokens_total",
        "num_preemptions_total",
        "iteration_tokens_total_count",
        "time_to_first_token_seconds_count",
    ):
        assert values[f"vllm:{name}", ""] == 0
    assert values["vllm:request_success_total", "length"] == 0
    assert values["process_start_time_seconds", ""] > 0


def test_the_page_follows_the_engine(loop: ClosedLoop) -> None:
    page = page_of(loop)
    for _ in range(3):
        loop.engine.submit(request(prompt_tokens=100, output_tokens=10), loop.now)
    loop.step()
    early = samples(page)
    assert early["vllm:num_requests_running", ""] == 2
    assert early["vllm:num_requests_waiting", ""] == 1
    assert early["vllm:num_requests_waiting_by_reason", "capacity"] == 1
    assert 0 < early["vllm:kv_cache_usage_perc", ""] < 0.001
    while not loop.engine.idle:
        loop.step()
    late = samples(page)
    assert late["vllm:num_requests_running", ""] == 0
    assert late["vllm:prompt_tokens_total", ""] == 300
    assert late["vllm:generation_tokens_total", ""] == 30
    assert late["vllm:request_success_total", "length"] == 3
    assert late["vllm:time_to_first_token_seconds_count", ""] == 3
    assert late["vllm:inter_token_latency_seconds_count", ""] == 27
    assert late["vllm:e2e_request_latency_seconds_count", ""] == 3
    assert late["vllm:iteration_tokens_total_sum", ""] == 300 + 27
    assert late["vllm:iteration_tokens_total_count", ""] == 20


def test_buckets_are_cumulative_and_end_at_the_count(loop: ClosedLoop) -> None:
    loop.run(2, 5.0)
    values = samples(page_of(loop))
    name = "vllm:inter_token_latency_seconds"
    buckets = [value for (sample, _), value in values.items() if sample == f"{name}_bucket"]
    assert buckets == sorted(buckets)
    assert buckets[-1] == values[f"{name}_count", ""] > 0
    assert values[f"{name}_bucket", "0.01"] == 0
    assert values[f"{name}_bucket", "0.075"] == values[f"{name}_count", ""]


def test_answers_are_counted_by_class(loop: ClosedLoop) -> None:
    page = page_of(loop)
    for status in (200, 200, 404):
        page.count_response("/v1/completions", "POST", status)
    counts = {
        sample.labels["status"]: sample.value
        for family in text_string_to_metric_families(page.render().decode())
        for sample in family.samples
        if sample.name == "http_requests_total"
    }
    assert counts == {"2xx": 2, "4xx": 1}


@pytest.mark.parametrize(("value", "bucket"), [(0.5, 0), (1.0, 0), (1.5, 1), (2.0, 1), (2.1, 2)])
def test_a_value_on_a_bound_counts_under_it(value: float, bucket: int) -> None:
    histogram = Histogram([1.0, 2.0])
    histogram.observe(value)
    assert histogram.counts.index(1) == bucket
    assert (histogram.count, histogram.sum) == (1, value)
