"""The names and the order that scripts rely on, written out here a second time on purpose."""

from __future__ import annotations

import pytest

from gpu_dash.model.gpu import GpuSample
from gpu_dash.model.load import StepResult
from gpu_dash.record.columns import FILES, TEXT

PROMISED = {
    "gpu.csv": """time_s time_utc gpu uuid name temperature_celsius hotspot_temperature_celsius
        memory_temperature_celsius slowdown_temperature_celsius power_watts power_limit_watts
        energy_joules sm_clock_mhz sm_clock_max_mhz memory_clock_mhz utilization_percent
        memory_used_bytes memory_total_bytes headroom_celsius temperature_max_celsius
        power_max_watts sm_clock_min_mhz throttle_reasons throttle_thermal_s throttle_power_s""",
    "requests.csv": """request step concurrency scheduled_s time_s time_utc ttft_s tpot_s e2e_s
        prompt_tokens output_tokens tokens_in_window counted outcome detail""",
    "steps.csv": """step concurrency request_rate time_s duration_s elapsed_s requests_ok
        requests_failed output_tokens output_tokens_per_s prompt_tokens_per_s goodput_per_s
        ttft_p50_s ttft_p90_s ttft_p99_s itl_p50_s itl_p90_s itl_p99_s tpot_p50_s tpot_p90_s
        tpot_p99_s e2e_p50_s e2e_p90_s e2e_p99_s client_bound peak_temperature_celsius
        min_sm_clock_mhz peak_memory_used_bytes peak_total_power_watts throttle_thermal_s
        energy_joules joules_per_output_token net_joules_per_output_token""",
    "events.csv": "time_s time_utc kind severity source subject message first_check",
    "server.csv": """time_s time_utc running_requests waiting_requests kv_cache_usage
        prompt_tokens_total generation_tokens_total preemptions_total""",
}


@pytest.mark.parametrize("name", PROMISED)
def test_a_file_begins_with_the_promised_columns(name: str) -> None:
    promised = tuple(PROMISED[name].split())
    assert FILES[name][: len(promised)] == promised


def test_fast_rows_have_the_columns_of_the_slow_ones() -> None:
    assert FILES["gpu_fast.csv"] == FILES["gpu.csv"]


def test_every_value_of_a_sample_and_of_a_step_has_a_column() -> None:
    assert set(GpuSample.__struct_fields__) <= set(FILES["gpu.csv"])
    assert StepResult.__struct_fields__ == FILES["steps.csv"][:-1]


def test_no_column_stands_twice_and_texts_are_columns() -> None:
    for columns in FILES.values():
        assert len(set(columns)) == len(columns)
    assert {column for columns in FILES.values() for column in columns} >= TEXT
