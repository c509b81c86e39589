"""What ``gpu-dash gpus`` prints of one reading."""

from __future__ import annotations

import pytest

from gpu_dash.cli import gpu_rows, gpu_words
from gpu_dash.cli.gpu_rows import reading_rows
from gpu_dash.cli.gpu_servers import server_of
from gpu_dash.cli.gpu_words import reading_table
from gpu_dash.gpu.once import OneReading
from gpu_dash.model.events import GpuProcesses, GpuSourceChanged
from gpu_dash.model.gpu import GpuInfo, GpuProcess, GpuSample, GpuSourceState

WORKER = GpuProcess(
    gpu=0, pid=70, memory_bytes=3 * 2**30, name="VLLM::Worker_TP0", belongs_to=(70, 50, 60)
)
UNSEEN = GpuProcess(gpu=1, pid=4711)


def reading(*processes: GpuProcess, told: bool = True, detail: str = "") -> OneReading:
    """A whole card, one in MIG mode, and one that is lost."""
    return OneReading(
        source=GpuSourceChanged(
            at=0.0,
            source="nvml",
            state=GpuSourceState.LIVE,
            gpus=(
                GpuInfo(gpu=0, name="H200", sm_clock_max_mhz=1980),
                GpuInfo(gpu=1, name="A100", mig_uuids=("MIG-a",)),
                GpuInfo(gpu=2, name="GPU 2"),
            ),
            event_sources=("nvml",),
            event_sources_missing=("/dev/kmsg: Operation not permitted; root reads it",),
        ),
        samples=(
            GpuSample(gpu=0, temperature_celsius=61, utilization_percent=95, sm_clock_mhz=1950),
            GpuSample(gpu=1, temperature_celsius=40),
        ),
        failures={2: "nvmlDeviceGetHandleByIndex: GPU is lost"},
        processes=GpuProcesses(at=0.0, processes=processes, detail=detail) if told else None,
    )


@pytest.fixture(autouse=True)
def one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (gpu_rows, gpu_words):
        monkeypatch.setattr(module, "running_servers", lambda: {50: "qwen-tp2"})


def test_a_process_is_its_servers_by_session() -> None:
    assert server_of(WORKER, {50: "qwen-tp2"}) == "qwen-tp2"
    assert server_of(WORKER, {51: "another"}) is None


def test_the_rows_say_who_what_is_missing_and_why() -> None:
    whole, split, lost = reading_rows(reading(WORKER, UNSEEN))
    assert whole["processes"] == [
        {"pid": 70, "name": "VLLM::Worker_TP0", "memory_bytes": 3 * 2**30, "server": "qwen-tp2"}
    ]
    assert split["processes"] == [{"pid": 4711, "name": None, "memory_bytes": None, "server": None}]
    assert (split["utilization_percent"], split["mig_uuids"]) == (None, ["MIG-a"])
    assert (lost["temperature_celsius"], lost["throttle_reasons"]) == (None, None)
    assert lost["error"].endswith("GPU is lost")
    assert (whole["error"], whole["event_sources"]) == (None, ["nvml"])


def test_a_driver_that_tells_no_processes_says_null_rather_than_none() -> None:
    assert reading_rows(reading(told=False))[0]["processes"] is None
    assert reading_rows(reading())[0]["processes"] == []


def test_the_table_is_for_people() -> None:
    text = reading_table(reading(WORKER, UNSEEN, detail="told in host pids"))
    assert "n/a (MIG)" in text
    assert "0    70    3.0 GiB  qwen-tp2  VLLM::Worker_TP0" in text
    assert "1    4711  -        -         (not seen here)" in text
    assert "processes: told in host pids" in text
    assert "XIDs and resets are heard from nvml\n  not from /dev/kmsg: Operation not perm" in text
