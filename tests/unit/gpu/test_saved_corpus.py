"""Real outputs of GPU tools and kernels, each with what a reader should get of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from gpu_dash.cli.gpus import command
from gpu_dash.gpu.saved.reading import read_saved
from gpu_dash.gpu.values import kernel_bus_id

FOLDER = Path(__file__).parents[2] / "data" / "smi"
CASES = [json.loads(line) for line in (FOLDER / "index.jsonl").read_text().splitlines()]
IS_HEADERLESS = "081"

NAMES = {
    # what the index calls a value → our column, and the factor between their units
    "key": ("gpu", 1),
    "index": ("gpu", 1),
    "temp_gpu_c": ("temperature_celsius", 1),
    "temp_edge_c": ("edge_temperature_celsius", 1),
    "temp_junction_c": ("hotspot_temperature_celsius", 1),
    "temp_hotspot_c": ("hotspot_temperature_celsius", 1),
    "temp_mem_c": ("memory_temperature_celsius", 1),
    "temp_hbm_c": ("hbm_temperatures_celsius", 1),
    "temp_tlimit_c": ("tlimit_celsius", 1),
    "temp_shutdown_c": ("shutdown_temperature_celsius", 1),
    "temp_slowdown_c": ("slowdown_temperature_celsius", 1),
    "temp_max_operating_c": ("max_operating_temperature_celsius", 1),
    "temp_target_c": ("target_temperature_celsius", 1),
    "tlimit_shutdown_c": ("tlimit_shutdown_celsius", 1),
    "tlimit_slowdown_c": ("tlimit_slowdown_celsius", 1),
    "temp_edge_crit_c": ("edge_slowdown_celsius", 1),
    "temp_junction_crit_c": ("hotspot_slowdown_celsius", 1),
    "temp_mem_crit_c": ("memory_slowdown_celsius", 1),
    "slowdown_edge_c": ("edge_slowdown_celsius", 1),
    "slowdown_hotspot_c": ("hotspot_slowdown_celsius", 1),
    "slowdown_mem_c": ("memory_slowdown_celsius", 1),
    "shutdown_edge_c": ("edge_shutdown_celsius", 1),
    "shutdown_hotspot_c": ("hotspot_shutdown_celsius", 1),
    "shutdown_mem_c": ("memory_shutdown_celsius", 1),
    "power_w": ("power_watts", 1),
    "power_average_w": ("power_average_watts", 1),
    "power_instant_w": ("power_instant_watts", 1),
    "power_limit_w": ("power_limit_watts", 1),
    "power_cap_w": ("power_limit_watts", 1),
    "power_enforced_limit_w": ("power_limit_watts", 1),
    "power_limit_max_w": ("power_limit_max_watts", 1),
    "power_limit_min_w": ("power_limit_min_watts", 1),
    "memory_power_average_w": ("memory_power_average_watts", 1),
    "module_power_w": ("module_power_watts", 1),
    "util_pct": ("utilization_percent", 1),
    "mem_util_pct": ("memory_utilization_percent", 1),
    "mem_activity_pct": ("memory_utilization_percent", 1),
    "umc_activity_pct": ("memory_utilization_percent", 1),
    "enc_util_pct": ("encoder_utilization_percent", 1),
    "dec_util_pct": ("decoder_utilization_percent", 1),
    "vram_alloc_pct": ("memory_used_percent", 1),
    "vram_pct": ("memory_used_percent", 1),
    "vram_total_b": ("memory_total_bytes", 1),
    "vram_used_b": ("memory_used_bytes", 1),
    "vram_total_mb": ("memory_total_bytes", 2**20),
    "vram_used_mb": ("memory_used_bytes", 2**20),
    "vram_total_gb": ("memory_total_bytes", 2**30),
    "vram_used_gb": ("memory_used_bytes", 2**30),
    "gtt_total_b": ("gtt_total_bytes", 1),
    "gtt_used_b": ("gtt_used_bytes", 1),
    "gtt_total_mb": ("gtt_total_bytes", 2**20),
    "gtt_used_mb": ("gtt_used_bytes", 2**20),
    "mem_total_gb": ("gtt_total_bytes", 2**30),
    "mem_used_gb": ("gtt_used_bytes", 2**30),
    "fb_total_mib": ("memory_total_bytes", 2**20),
    "fb_used_mib": ("memory_used_bytes", 2**20),
    "fb_reserved_mib": ("memory_reserved_bytes", 2**20),
    "sclk_mhz": ("sm_clock_mhz", 1),
    "sclk_max_mhz": ("sm_clock_max_mhz", 1),
    "mclk_mhz": ("memory_clock_mhz", 1),
    "freq_sclk_mhz": ("sm_clock_mhz", 1),
    "freq_mclk_mhz": ("memory_clock_mhz", 1),
    "pp_dpm_sclk_current_mhz": ("pp_dpm_sclk_current_mhz", 1),
    "pp_dpm_mclk_current_mhz": ("pp_dpm_mclk_current_mhz", 1),
    "graphics_mhz": ("graphics_clock_mhz", 1),
    "sm_mhz": ("sm_clock_mhz", 1),
    "mem_mhz": ("memory_clock_mhz", 1),
    "fan_pct": ("fan_percent", 1),
    "pstate": ("performance_state", 1),
    "mig": ("mig_mode", 1),
    "ecc": ("ecc_mode", 1),
    "pcie_speed_gts": ("pcie_speed_gts", 1),
    "ecc_correctable": ("ecc_corrected", 1),
    "ecc_uncorrectable": ("ecc_uncorrected", 1),
    "ppt_violation_pct": ("ppt_violation_percent", 1),
    "sw_power_cap_us": ("sw_power_cap_s", 1e-6),
    "throttle_reasons_active": ("clocks_event_reasons", 1),
}
REASONS = {"Idle": "gpu_idle"}


@pytest.mark.parametrize("case", CASES, ids=[case["file"][6:9] for case in CASES])
def test_a_real_output(case: dict[str, Any]) -> None:
    text = (FOLDER / case["file"]).read_text(errors="replace")
    columns = case["tool"].partition("--query-gpu=")[2].split(" ")[0].split(",")
    arguments = ["--json", "--input", "-"]
    if IS_HEADERLESS in case["file"]:
        arguments += ["--columns", ",".join(columns)]
    rows = json.loads(CliRunner().invoke(command, arguments, input=text).stdout or "[]")
    expected = case["expect"]
    wanted = expected.get("events", expected.get("gpus", [expected]))
    assert len(rows) == len(wanted)
    differences = [
        f"{place}: {name}: {got!r}, expected {want!r}"
        for place, (row, values) in enumerate(zip(rows, wanted, strict=True))
        for name, got, want in _differences(row, values)
    ]
    assert differences == []


def _differences(row: dict[str, Any], values: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name, want in values.items():
        column, factor = NAMES.get(name, (name, 1))
        got = row.get(column)
        if name == "pci":
            got, want = row["pci_bus_id"], want and kernel_bus_id(want)
        elif name == "key":
            want = int(want.removeprefix("card"))
        elif name == "severity":
            got, want = got, {"Fatal": "critical"}[want]
        elif name == "action":
            got = row["immediate_action"]
        elif name == "mig_devices_count":
            got = len(row["mig_devices"])
        elif name == "mig_devices":
            got = [device["memory_used_bytes"] for device in row["mig_devices"]]
            want = [device["fb_used_mib"] * 2**20 for device in want]
        elif name == "gpu_metrics":
            for field, number in want.items():
                if (table := row["gpu_metrics"]).get(field, number) != number:
                    yield f"gpu_metrics {field}", table[field], number
            continue
        elif name == "throttle_reasons_active":
            want = [REASONS.get(reason, reason) for reason in want]
        elif isinstance(want, int | float) and not isinstance(want, bool):
            want = pytest.approx(want * factor, abs=0.5 if factor > 1 else 1e-6)
        if got != want:
            yield name, got, want


def test_a_lost_device_is_an_error_in_words() -> None:
    text = (FOLDER / "cases/090.nvidia-smi.txt").read_text()
    result = CliRunner().invoke(command, ["--input", "-"], input=text)
    assert "GPU 0000:02:00.0: device lost" in str(result.exception)


def test_numbers_without_a_header_are_not_guessed() -> None:
    text = (FOLDER / "cases/081.nvidia-smi.txt").read_text()
    output = read_saved(text)
    (card,) = output.cards
    assert card.info.name == "GeForce RTX 2080"
    assert msgspec.to_builtins(card.sample) == {"gpu": 0}
    assert "--columns" in output.remark
