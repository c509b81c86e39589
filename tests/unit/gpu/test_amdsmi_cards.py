"""AMD's binding as far as it can be had without its library: its calls and its ways to say no."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from gpu_dash.gpu.amd_library import AmdLibraryBackend
from gpu_dash.gpu.backend import SourceAbsent
from tests.fakes.clock import ManualClock


class BindingError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"status {code}")
        self._code = code

    def get_error_code(self) -> int:
        return self._code


def binding(**answers: Any) -> types.ModuleType:
    """A module with the names of amdsmi 7; an answer that is an exception is raised."""
    module: Any = types.ModuleType("amdsmi")
    module.AmdSmiException = BindingError
    module.AmdSmiRetCode = types.SimpleNamespace(NOT_SUPPORTED=2, NO_DATA=40)
    module.AmdSmiTemperatureType = types.SimpleNamespace(EDGE="edge", HOTSPOT="spot", VRAM="vram")
    module.AmdSmiTemperatureMetric = types.SimpleNamespace(CURRENT="now", CRITICAL="critical")
    module.AmdSmiClkType = types.SimpleNamespace(GFX="gfx", MEM="mem")
    module.AmdSmiMemoryType = types.SimpleNamespace(VRAM="vram")
    module.amdsmi_init = lambda: None
    module.amdsmi_get_processor_handles = lambda: ["first"]

    def answering(answer: Any) -> Callable[..., Any]:
        def call(handle: str, *arguments: Any) -> Any:
            value = answer.get(arguments[0]) if arguments and isinstance(answer, dict) else answer
            if isinstance(value, Exception):
                raise value
            return value

        return call

    for name, answer in answers.items():
        setattr(module, f"amdsmi_get_{name}", answering(answer))
    made: types.ModuleType = module
    return made


MI300X = {
    "temp_metric": {"edge": BindingError(2), "spot": 42, "vram": 65535},
    "power_info": {"current_socket_power": 140, "average_socket_power": "N/A"},
    "clock_info": {"gfx": {"clk": 132, "max_clk": 2100}, "mem": {"clk": 900, "max_clk": 1300}},
    "gpu_activity": {"gfx_activity": 5, "umc_activity": "N/A"},
    "gpu_memory_usage": {"vram": 10854400},
    "gpu_memory_total": {"vram": 206141652992},
    "power_cap_info": {"power_cap": 750_000_000, "max_power_cap": 750_000_000},
    "gpu_asic_info": {"market_name": "AMD Instinct MI300X\x1b[m"},
    "gpu_device_bdf": "0000:05:00.0",
}


@pytest.fixture(autouse=True)
def without_pyrsmi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyrsmi", None)


def test_what_a_chip_has_is_read_and_the_rest_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", binding(**MI300X))
    backend = AmdLibraryBackend(ManualClock())
    backend.open()
    (info,) = backend.gpus
    assert (info.name, info.pci_bus_id) == ("AMD Instinct MI300X", "0000:05:00.0")
    assert (info.sm_clock_max_mhz, info.power_limit_max_watts) == (2100, 750)
    (reading,) = backend.sweep().readings
    sample = reading.sample
    assert sample.temperature_celsius == sample.hotspot_temperature_celsius == 42
    assert sample.memory_temperature_celsius is None
    assert (sample.power_watts, sample.power_limit_watts) == (140, 750)
    assert (sample.sm_clock_mhz, sample.memory_clock_mhz) == (132, 900)
    assert (sample.utilization_percent, sample.memory_utilization_percent) == (5, None)
    assert sample.memory_used_bytes == 10854400
    assert "amdsmi" in backend.detail


def test_a_call_that_stops_working_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = binding(**MI300X)
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    backend = AmdLibraryBackend(ManualClock())
    backend.open()
    module.amdsmi_get_power_info = binding(power_info=BindingError(9)).amdsmi_get_power_info
    sweep = backend.sweep()
    assert [(failure.call, failure.error) for failure in sweep.failures] == [
        ("amdsmi_get_power_info", "status 9")
    ]
    assert sweep.readings[0].sample.power_watts is None


def test_a_library_that_does_not_start_is_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = binding()
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    module.amdsmi_get_processor_handles = list
    with pytest.raises(SourceAbsent, match="amdsmi: its library finds no card; pyrsmi: not inst"):
        AmdLibraryBackend().open()
    del module.amdsmi_init
    with pytest.raises(SourceAbsent, match="has no attribute 'amdsmi_init'"):
        AmdLibraryBackend().open()
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(SourceAbsent, match="amdsmi: not installed; pyrsmi: not installed"):
        AmdLibraryBackend().open()
