"""Which processes compute on a card, as NVML tells."""

from __future__ import annotations

from typing import Any

from gpu_dash.gpu.card import NotOffered, ReadFailed
from gpu_dash.gpu.nvml_driver import NvmlDriver
from gpu_dash.gpu.processes import Holder

_VERSIONS = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")
"""By name, as the binding's unversioned function refuses a driver that lacks the newest."""


def holders_on(driver: NvmlDriver, handle: Any, gpu: int) -> list[Holder] | None:
    """The processes on one card; ``None`` where the driver does not tell.

    Raises:
        GpuSourceError: the driver as a whole is gone.
    """
    for version in _VERSIONS:
        try:
            found = driver.call(version, handle)
        except NotOffered:
            continue
        except ReadFailed:
            return None
        return [Holder(gpu, process.pid, process.usedGpuMemory) for process in found]
    return None
