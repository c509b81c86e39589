"""Cards through amdsmi, AMD's own binding, which is the richest of theirs.

A value that a chip does not have comes as the text ``N/A`` or as all ones, never as an error.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from gpu_dash.gpu.backend import SourceAbsent
from gpu_dash.gpu.card import NotOffered, Quantity, ReadFailed
from gpu_dash.gpu.library_card import LibraryCard, offered, quantity
from gpu_dash.gpu.values import celsius, count, limit_watts, megahertz, percent, watts, words
from gpu_dash.model.gpu import GpuInfo, GpuVendor
from gpu_dash.model.text import one_line, strip_controls

_NOT_OFFERED = ("NOT_SUPPORTED", "NOT_YET_IMPLEMENTED", "NO_DATA")
_MICRO = 1e6


def find_cards() -> list[LibraryCard]:
    """The cards that it finds.

    Raises:
        SourceAbsent: it is not installed, its library does not start, or it finds no card.
    """
    try:
        amdsmi = importlib.import_module("amdsmi")
        amdsmi.amdsmi_init()
        handles = amdsmi.amdsmi_get_processor_handles()
    except ImportError as error:
        raise SourceAbsent("not installed") from error
    except Exception as error:  # a library of another version lets any of Python's errors through
        raise SourceAbsent(one_line(str(error)) or type(error).__name__) from error
    if not handles:
        raise SourceAbsent("its library finds no card")
    return [_Card(amdsmi, handle, gpu).described() for gpu, handle in enumerate(handles)]


class _Card:
    """Calls of the binding about one card."""

    def __init__(self, amdsmi: Any, handle: Any, gpu: int) -> None:
        self._amdsmi = amdsmi
        self._handle = handle
        self._gpu = gpu
        codes = (getattr(amdsmi.AmdSmiRetCode, name, None) for name in _NOT_OFFERED)
        self._not_offered = {code for code in codes if code is not None}

    def described(self) -> LibraryCard:
        """The card and what is read of it."""
        temperature, clock = self._temperature, self._clock
        return LibraryCard(
            info=self._info(),
            fast=offered(
                temperature("EDGE", "temperature_celsius"),
                temperature("HOTSPOT", "hotspot_temperature_celsius"),
                temperature("VRAM", "memory_temperature_celsius"),
                quantity("amdsmi_get_power_info", self._power),
                clock("GFX", "sm_clock_mhz"),
            ),
            slow=offered(
                clock("MEM", "memory_clock_mhz"),
                quantity("amdsmi_get_gpu_activity", self._activity),
                quantity("amdsmi_get_gpu_memory_usage", self._memory_used),
                quantity("amdsmi_get_power_cap_info", self._power_cap),
            ),
        )

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the binding.

        Raises:
            NotOffered: the chip or this version does not have it.
            ReadFailed: any other error.
        """
        function = getattr(self._amdsmi, name, None)
        if function is None:
            raise NotOffered(name)
        try:
            return function(self._handle, *arguments)
        except self._amdsmi.AmdSmiException as error:
            code = error.get_error_code() if hasattr(error, "get_error_code") else None
            if code in self._not_offered:
                raise NotOffered(name) from error
            raise ReadFailed(one_line(str(error))) from error

    def _ask(self, name: str, *arguments: Any) -> Any:
        try:
            return self.call(name, *arguments)
        except (NotOffered, ReadFailed):
            return None

    def _info(self) -> GpuInfo:
        asic = self._ask("amdsmi_get_gpu_asic_info") or {}
        caps = self._ask("amdsmi_get_power_cap_info") or {}
        types, metrics = self._amdsmi.AmdSmiTemperatureType, self._amdsmi.AmdSmiTemperatureMetric
        clocks = self._ask("amdsmi_get_clock_info", self._amdsmi.AmdSmiClkType.GFX) or {}
        bus_id = words(self._ask("amdsmi_get_gpu_device_bdf") or "")
        name = strip_controls(words(asic.get("market_name", "")))
        limit = self._ask("amdsmi_get_temp_metric", types.HOTSPOT, metrics.CRITICAL)
        return GpuInfo(
            gpu=self._gpu,
            name=name or f"AMD GPU {self._gpu}",
            uuid=strip_controls(words(self._ask("amdsmi_get_gpu_device_uuid") or "")),
            pci_bus_id=strip_controls(bus_id).lower(),
            vendor=GpuVendor.AMD,
            slowdown_temperature_celsius=celsius(limit),
            power_limit_default_watts=_micro(caps.get("default_power_cap")),
            power_limit_min_watts=_micro(caps.get("min_power_cap")),
            power_limit_max_watts=_micro(caps.get("max_power_cap")),
            sm_clock_max_mhz=megahertz(clocks.get("max_clk")),
            memory_total_bytes=count(
                self._ask("amdsmi_get_gpu_memory_total", self._amdsmi.AmdSmiMemoryType.VRAM)
            ),
        )

    def _temperature(self, sensor: str, field: str) -> Quantity:
        call = "amdsmi_get_temp_metric"
        kind = getattr(self._amdsmi.AmdSmiTemperatureType, sensor)
        current = self._amdsmi.AmdSmiTemperatureMetric.CURRENT
        fields = [field]
        if sensor == "HOTSPOT" and celsius(self._ask(call, *self._edge())) is None:
            fields.append("temperature_celsius")

        def read() -> Mapping[str, Any]:
            return dict.fromkeys(fields, celsius(self.call(call, kind, current)))

        return quantity(f"{call} ({sensor.lower()})", read)

    def _edge(self) -> tuple[Any, Any]:
        types, metrics = self._amdsmi.AmdSmiTemperatureType, self._amdsmi.AmdSmiTemperatureMetric
        return types.EDGE, metrics.CURRENT

    def _clock(self, kind: str, field: str) -> Quantity:
        clock = getattr(self._amdsmi.AmdSmiClkType, kind)

        def read() -> Mapping[str, Any]:
            answer = self.call("amdsmi_get_clock_info", clock)
            return {field: megahertz(answer.get("clk", answer.get("cur_clk")))}

        return quantity(f"amdsmi_get_clock_info ({kind.lower()})", read)

    def _power(self) -> Mapping[str, Any]:
        answer = self.call("amdsmi_get_power_info")
        names = ("current_socket_power", "average_socket_power", "socket_power")
        known = (watts(answer.get(name)) for name in names)
        return {"power_watts": next((power for power in known if power is not None), None)}

    def _activity(self) -> Mapping[str, Any]:
        answer = self.call("amdsmi_get_gpu_activity")
        return {
            "utilization_percent": percent(answer.get("gfx_activity")),
            "memory_utilization_percent": percent(answer.get("umc_activity")),
        }

    def _memory_used(self) -> Mapping[str, Any]:
        used = self.call("amdsmi_get_gpu_memory_usage", self._amdsmi.AmdSmiMemoryType.VRAM)
        return {"memory_used_bytes": count(used)}

    def _power_cap(self) -> Mapping[str, Any]:
        answer = self.call("amdsmi_get_power_cap_info")
        return {"power_limit_watts": _micro(answer.get("power_cap"))}


def _micro(value: Any) -> float | None:
    """A cap in microwatts; versions before 6 give watts."""
    cap = limit_watts(value)
    if cap is not None:
        return cap
    amount = count(value)
    return None if not amount else limit_watts(amount / _MICRO)
