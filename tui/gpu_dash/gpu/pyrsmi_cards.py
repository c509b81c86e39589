"""Cards through pyrsmi: use, memory and power. It has no temperature, clock, cap or throttle call
in any version, and answers -1 or an empty text where a call fails."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from gpu_dash.gpu.backend import SourceAbsent
from gpu_dash.gpu.card import Quantity
from gpu_dash.gpu.library_card import LibraryCard, offered, quantity
from gpu_dash.gpu.values import count, percent, watts
from gpu_dash.model.gpu import GpuInfo, GpuVendor
from gpu_dash.model.text import one_line, strip_controls


def find_cards() -> list[LibraryCard]:
    """The cards that it finds.

    Raises:
        SourceAbsent: it is not installed, its library does not start, or it finds no card.
    """
    try:
        rocml = importlib.import_module("pyrsmi.rocml")
        rocml.smi_initialize()
        found = rocml.smi_get_device_count()
    except ImportError as error:
        raise SourceAbsent("not installed") from error
    except Exception as error:  # its errors have no common root, and it lets others through
        raise SourceAbsent(one_line(str(error)) or type(error).__name__) from error
    if found < 1:
        raise SourceAbsent("its library finds no card")
    return [_card(rocml, gpu) for gpu in range(found)]


def _card(rocml: Any, gpu: int) -> LibraryCard:
    def one(field: str, call: str, read: Callable[[Any], Any]) -> Quantity:
        return quantity(call, lambda: {field: read(getattr(rocml, call)(gpu))})

    name = rocml.smi_get_device_name(gpu)
    return LibraryCard(
        info=GpuInfo(
            gpu=gpu,
            name=strip_controls(name) if isinstance(name, str) and name else f"AMD GPU {gpu}",
            pci_bus_id=_bus_id(rocml.smi_get_device_pci_id(gpu)),
            vendor=GpuVendor.AMD,
            memory_total_bytes=count(rocml.smi_get_device_memory_total(gpu)),
        ),
        fast=offered(one("power_watts", "smi_get_device_average_power", watts)),
        slow=offered(
            one("utilization_percent", "smi_get_device_utilization", percent),
            one("memory_used_bytes", "smi_get_device_memory_used", count),
            one("memory_total_bytes", "smi_get_device_memory_total", count),
        ),
    )


def _bus_id(packed: Any) -> str:
    """``domain << 32 | bus << 8 | device << 3 | function``, as ROCm's libraries pack it."""
    if not isinstance(packed, int) or packed < 0:
        return ""
    domain, bus = packed >> 32, packed >> 8 & 0xFF
    return f"{domain:04x}:{bus:02x}:{packed >> 3 & 0x1F:02x}.{packed & 7}"
