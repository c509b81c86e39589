"""Which processes hold memory of which card, as the NVIDIA driver tells."""

from __future__ import annotations

import contextlib

from gpu_dash.gpu.backend import SourceAbsent
from gpu_dash.gpu.card import CardLost, NotOffered, ReadFailed
from gpu_dash.gpu.nvml_driver import NvmlDriver
from gpu_dash.gpu.nvml_processes import holders_on
from gpu_dash.model.errors import GpuSourceError


def gpu_memory_by_process() -> dict[int, dict[int, int]]:
    """Bytes by card, for each pid that holds some; empty where no driver tells.

    In a container of its own the driver's pids are the host's and match none of ours.
    """
    held: dict[int, dict[int, int]] = {}
    try:
        driver = NvmlDriver()
        count = driver.call("nvmlDeviceGetCount")
    except (SourceAbsent, GpuSourceError, NotOffered, CardLost, ReadFailed):
        return held
    for gpu in range(count):
        # A card that does not answer says nothing about the others.
        with contextlib.suppress(NotOffered, CardLost, ReadFailed):
            card = driver.call("nvmlDeviceGetHandleByIndex", gpu)
            for holder in holders_on(driver, card, gpu) or ():
                held.setdefault(holder.pid, {})[gpu] = holder.memory_bytes or 0
    return held
