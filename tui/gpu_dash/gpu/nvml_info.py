"""What an NVIDIA card is: read once, because some of it takes milliseconds."""

from __future__ import annotations

from typing import Any

from gpu_dash.gpu.card import NotOffered, ReadFailed
from gpu_dash.gpu.nvml_driver import NvmlDriver
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.text import strip_controls


def read_info(driver: NvmlDriver, handle: Any, gpu: int) -> GpuInfo:
    """A card's identity, limits and maxima; what cannot be had is left out.

    The temperature limits come from the thresholds. The newer ``…_TLIMIT`` fields are distances
    to them, not temperatures.

    Raises:
        GpuSourceError: the driver as a whole is gone.
    """
    card = _Once(driver, handle)
    nvml = driver.nvml
    least, most = card.ask("nvmlDeviceGetPowerManagementLimitConstraints") or (None, None)
    memory = card.ask("nvmlDeviceGetMemoryInfo")
    pci = card.ask("nvmlDeviceGetPciInfo")
    return GpuInfo(
        gpu=gpu,
        name=strip_controls(card.ask("nvmlDeviceGetName") or f"GPU {gpu}"),
        uuid=strip_controls(card.ask("nvmlDeviceGetUUID") or ""),
        pci_bus_id="" if pci is None else kernel_bus_id(pci.busId),
        max_operating_temperature_celsius=card.limit(nvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX),
        slowdown_temperature_celsius=card.limit(nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        shutdown_temperature_celsius=card.limit(nvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
        power_limit_default_watts=_watts(card.ask("nvmlDeviceGetPowerManagementDefaultLimit")),
        power_limit_min_watts=_watts(least),
        power_limit_max_watts=_watts(most),
        sm_clock_max_mhz=card.ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        memory_clock_max_mhz=card.ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
        memory_total_bytes=None if memory is None else memory.total,
        mig_uuids=card.mig_uuids(),
    )


def kernel_bus_id(bus_id: str | bytes) -> str:
    """NVML's ``00000000:9B:00.0`` as the kernel writes it: ``0000:9b:00.0``."""
    text = bus_id.decode("ascii", "replace") if isinstance(bus_id, bytes) else bus_id
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:] if domain.startswith('0000') else domain}:{rest}"


class _Once:
    """Questions to one card, ``None`` where it has no answer."""

    def __init__(self, driver: NvmlDriver, handle: Any) -> None:
        self._driver = driver
        self._handle = handle

    def ask(self, name: str, *arguments: Any) -> Any:
        try:
            return self._driver.call(name, self._handle, *arguments)
        except (NotOffered, ReadFailed):
            return None

    def mig_uuids(self) -> tuple[str, ...]:
        """Of the MIG devices that exist; their numbers may have gaps."""
        mode = self.ask("nvmlDeviceGetMigMode")
        if mode is None or not mode[0]:
            return ()
        uuids = []
        for number in range(self.ask("nvmlDeviceGetMaxMigDeviceCount") or 0):
            device = self.ask("nvmlDeviceGetMigDeviceHandleByIndex", number)
            uuid = None if device is None else _Once(self._driver, device).ask("nvmlDeviceGetUUID")
            if uuid:
                uuids.append(strip_controls(uuid))
        return tuple(uuids)

    def limit(self, which: int) -> float | None:
        celsius: float | None = self.ask("nvmlDeviceGetTemperatureThreshold", which)
        return celsius


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
