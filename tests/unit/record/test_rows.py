"""Rows of the other files."""

from __future__ import annotations

from gpu_dash.model.load import Outcome, RequestRecord, StepResult
from gpu_dash.model.server import ServerMetrics
from gpu_dash.record.columns import REQUESTS, SERVER, STEPS
from gpu_dash.record.rows import ServerRows, request_row, step_row
from tests.unit.record.recorded import ANCHOR, on


def test_a_request_has_microseconds_and_says_what_went_wrong_on_one_line() -> None:
    request = RequestRecord(
        request=7,
        step=2,
        concurrency=4,
        conversation=9,
        turn=2,
        retries=1,
        scheduled=on(12.0000004),
        sent=on(12.1234567),
        ttft_s=0.04123449,
        prompt_tokens=512,
        output_tokens=3,
        tokens_in_window=2,
        counted=True,
        outcome=Outcome.SERVER_ERROR,
        detail='500: {\n  \x1b[31m"error": 1\n}',
    )
    row = dict(zip(REQUESTS, request_row(ANCHOR, on(13.5), request), strict=True))
    assert {name: cell for name, cell in row.items() if cell} == {
        "request": "7",
        "step": "2",
        "concurrency": "4",
        "scheduled_s": "12.000000",
        "time_s": "12.123457",
        "time_utc": "2027-01-15T08:00:12.623Z",
        "ttft_s": "0.041234",
        "prompt_tokens": "512",
        "output_tokens": "3",
        "tokens_in_window": "2",
        "counted": "true",
        "outcome": "server_error",
        "detail": '500: { ⏎   "error": 1 ⏎ }',
        "usage_missing": "false",
        "reported_s": "13.500000",
        "conversation": "9",
        "turn": "2",
        "retries": "1",
    }


def test_a_step_has_its_moment_and_leaves_empty_what_it_does_not_know() -> None:
    result = StepResult(
        step=1, concurrency=None, request_rate=2.5, time_s=9, duration_s=1, elapsed_s=2
    )
    row = dict(zip(STEPS, step_row(ANCHOR, result), strict=True))
    assert row["time_utc"] == "2027-01-15T08:00:09.500Z"
    assert (row["concurrency"], row["request_rate"], row["client_bound"]) == ("", "2.5", "false")
    assert row["output_tokens_per_s"] == "0"
    assert row["ttft_p50_s"] == row["energy_joules"] == ""


def server_rows(*readings: tuple[float, ServerMetrics]) -> list[dict[str, str]]:
    rows = ServerRows(ANCHOR)
    return [dict(zip(SERVER, rows.row(on(at), m), strict=True)) for at, m in readings]


def test_rates_are_over_the_time_since_the_reading_before() -> None:
    first, second = server_rows(
        (5.0, ServerMetrics(running_requests=3, generation_tokens_total=100, kv_cache_usage=0.125)),
        (7.0, ServerMetrics(running_requests=4, generation_tokens_total=400)),
    )
    assert (first["time_s"], first["running_requests"], first["kv_cache_usage"]) == (
        "5.000",
        "3",
        "0.125",
    )
    assert first["generation_tokens_per_s"] == ""
    assert second["generation_tokens_per_s"] == "150"
    assert second["prompt_tokens_per_s"] == second["kv_cache_usage"] == ""


def test_a_server_that_started_again_has_no_negative_rate() -> None:
    *_, after, later = server_rows(
        (5.0, ServerMetrics(generation_tokens_total=900)),
        (6.0, ServerMetrics(generation_tokens_total=10)),
        (7.0, ServerMetrics(generation_tokens_total=30)),
    )
    assert (after["generation_tokens_per_s"], later["generation_tokens_per_s"]) == ("", "20")


def test_the_hit_ratio_is_that_of_the_queries_since_the_reading_before() -> None:
    *_, second, third = server_rows(
        (5.0, ServerMetrics(prefix_cache_queries_total=100, prefix_cache_hits_total=90)),
        (6.0, ServerMetrics(prefix_cache_queries_total=200, prefix_cache_hits_total=115)),
        (7.0, ServerMetrics(prefix_cache_queries_total=200, prefix_cache_hits_total=115)),
    )
    assert (second["prefix_cache_hit_ratio"], third["prefix_cache_hit_ratio"]) == ("0.25", "")
