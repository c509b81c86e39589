"""The columns of each file, in order.

Scripts rely on these names and on their order; a new column goes to the end. ``steps.csv`` and
the first columns of ``requests.csv`` are the field names of
:class:`~gpu_dash.model.load.StepResult` and :class:`~gpu_dash.model.load.RequestRecord`.
"""

from __future__ import annotations

GPU = (
    "time_s",
    "time_utc",
    "gpu",
    "uuid",
    "name",
    "temperature_celsius",
    "hotspot_temperature_celsius",
    "memory_temperature_celsius",
    "slowdown_temperature_celsius",
    "power_watts",
    "power_limit_watts",
    "energy_joules",
    "sm_clock_mhz",
    "sm_clock_max_mhz",
    "memory_clock_mhz",
    "utilization_percent",
    "memory_used_bytes",
    "memory_total_bytes",
    "headroom_celsius",
    "temperature_max_celsius",
    "power_max_watts",
    "sm_clock_min_mhz",
    "throttle_reasons",
    "throttle_thermal_s",
    "throttle_power_s",
    "power_peak_watts",
    "memory_utilization_percent",
    "fan_percent",
    "pcie_tx_bytes",
    "pcie_rx_bytes",
    "nvlink_tx_bytes",
    "nvlink_rx_bytes",
    "ecc_corrected",
    "ecc_uncorrected",
    "hbm_temperatures_celsius",
    "power_mean_watts",
    "energy_age_s",
    "sm_clock_mean_mhz",
)
"""``energy_joules`` is what the counter said ``energy_age_s`` before the row's time;
``sm_clock_mean_mhz`` is over all samples of the row."""

REQUESTS = (
    "request",
    "step",
    "concurrency",
    "scheduled_s",
    "time_s",
    "time_utc",
    "ttft_s",
    "tpot_s",
    "e2e_s",
    "prompt_tokens",
    "output_tokens",
    "tokens_in_window",
    "counted",
    "outcome",
    "detail",
    "usage_missing",
    "reported_s",
    "conversation",
    "turn",
    "retries",
)
"""``time_s`` is the moment it was sent, ``reported_s`` the moment its end was reported."""

STEPS = (
    "step",
    "concurrency",
    "request_rate",
    "time_s",
    "duration_s",
    "elapsed_s",
    "requests_ok",
    "requests_failed",
    "output_tokens",
    "output_tokens_per_s",
    "prompt_tokens_per_s",
    "goodput_per_s",
    "ttft_p50_s",
    "ttft_p90_s",
    "ttft_p99_s",
    "itl_p50_s",
    "itl_p90_s",
    "itl_p99_s",
    "tpot_p50_s",
    "tpot_p90_s",
    "tpot_p99_s",
    "e2e_p50_s",
    "e2e_p90_s",
    "e2e_p99_s",
    "client_bound",
    "peak_temperature_celsius",
    "min_sm_clock_mhz",
    "peak_memory_used_bytes",
    "peak_total_power_watts",
    "throttle_thermal_s",
    "energy_joules",
    "joules_per_output_token",
    "net_joules_per_output_token",
    "retries",
    "time_utc",
)
"""``time_s`` is the moment the window opened."""

SERVER = (
    "time_s",
    "time_utc",
    "running_requests",
    "waiting_requests",
    "kv_cache_usage",
    "prompt_tokens_total",
    "generation_tokens_total",
    "preemptions_total",
    "iterations_total",
    "prefix_cache_queries_total",
    "prefix_cache_hits_total",
    "prompt_tokens_per_s",
    "generation_tokens_per_s",
    "preemptions_per_s",
    "iterations_per_s",
    "prefix_cache_hit_ratio",
)
"""The rates are over the time since the row before."""

EVENTS = (
    "time_s",
    "time_utc",
    "kind",
    "severity",
    "source",
    "subject",
    "message",
    "first_check",
    "line",
    "data",
)
"""``line`` is the line of ``server.log`` that it was found in; ``data`` is the event as JSON
where the other columns do not hold all of it, its moments in seconds since the session's start."""

FILES: dict[str, tuple[str, ...]] = {
    "gpu.csv": GPU,
    "gpu_fast.csv": GPU,
    "requests.csv": REQUESTS,
    "steps.csv": STEPS,
    "server.csv": SERVER,
    "events.csv": EVENTS,
}
"""Every CSV file of a session folder with its columns."""

WRITTEN_LATE = frozenset({"gpu_fast.csv"})
"""Files that appear only when there is something to write to them."""

TEXT = frozenset(
    {
        "time_utc",
        "uuid",
        "name",
        "outcome",
        "detail",
        "kind",
        "severity",
        "source",
        "subject",
        "message",
        "first_check",
        "data",
        "throttle_reasons",
        "hbm_temperatures_celsius",
    }
)
"""Columns that hold words; all others hold a number, or ``true`` and ``false``."""
