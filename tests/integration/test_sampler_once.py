"""One reading without an agent."""

from __future__ import annotations

import time

import pytest

from gpu_dash.gpu.once import read_once
from gpu_dash.model.errors import GpuSourceError
from tests.fakes.nvml.scene import NvmlScene

pytest_plugins = ["tests.fakes.nvml.fixture"]


@pytest.fixture
def scene(nvml_scene: NvmlScene, monkeypatch: pytest.MonkeyPatch) -> NvmlScene:
    """The scripted driver, for children of this process."""
    for name, value in nvml_scene.variables().items():
        monkeypatch.setenv(name, value)
    return nvml_scene


def test_one_reading_has_the_dear_values_too(scene: NvmlScene) -> None:
    scene.write("gpus 16\n*.energy_mj 7000\n15.temp 71")
    reading = read_once("auto")
    source, samples = reading.source, reading.samples
    assert (source.source, len(source.gpus), source.detail) == ("nvml", 16, "")
    assert [sample.gpu for sample in samples] == list(range(16))
    assert samples[15].temperature_celsius == 71
    assert samples[15].energy_joules == 7


def test_a_card_that_does_not_answer_is_named(scene: NvmlScene) -> None:
    scene.write("gpus 2\n1.err.* GPU_IS_LOST")
    reading = read_once("nvml")
    assert [sample.gpu for sample in reading.samples] == [0]
    assert [info.gpu for info in reading.cards] == [0, 1]
    assert list(reading.failures) == [1]
    assert "GPU is lost" in reading.failures[1]


def test_simulated_cards_idle_without_a_server() -> None:
    reading = read_once("sim")
    source, samples = reading.source, reading.samples
    assert source.source == "sim"
    assert len(samples) == len(source.gpus) == 4


@pytest.mark.parametrize(
    ("source", "scenario", "words"),
    [
        ("auto", "*.err.nvmlInit* DRIVER_NOT_LOADED", "NVML init failed: Driver Not Loaded"),
        ("nvml", "*.err.nvmlInit* NO_PERMISSION", "Insufficient Permissions"),
        ("auto", "*.crash.nvmlDeviceGetName 11", "signal 11 (SIGSEGV)"),
        ("amd", "", "no AMD card with the amdgpu driver"),
        ("none", "", "no GPU readings were asked for"),
    ],
)
def test_without_a_source_the_reason_is_raised(
    scene: NvmlScene, source: str, scenario: str, words: str
) -> None:
    scene.write(scenario)
    with pytest.raises(GpuSourceError) as raised:
        read_once(source)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 4


def test_a_driver_that_hangs_is_not_waited_for(scene: NvmlScene) -> None:
    scene.write("*.delay_us.nvmlDeviceGetTemperature 60000000")
    began = time.monotonic()
    with pytest.raises(GpuSourceError, match="did not answer within"):
        read_once("nvml", timeout_s=0.7)
    assert time.monotonic() - began < 5
