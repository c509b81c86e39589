"""XIDs as NVML delivers them, waited for in a thread of their own.

NVML does not deliver them all: a card that falls off the bus may take its XID 79 with it, and
GSP errors (119, 120) are known to be missing. The kernel log has those.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

from gpu_dash.gpu.card import NotOffered, ReadFailed
from gpu_dash.gpu.nvml_driver import NvmlDriver
from gpu_dash.model.clock import Clock

WAIT_MS = 1000
PAUSE_AFTER_ERROR_S = 1.0

OnXid = Callable[[float, int | None, int], None]
"""Takes the moment, the card (``None``: the driver does not say which) and the code."""


class XidWatch:
    """Waits for XIDs of the cards that were added.

    Args:
        driver: the opened driver.
        on_xid: called from the watch's thread with the moment, the card and the code.
        clock: gives the moment of each XID.
    """

    def __init__(self, driver: NvmlDriver, on_xid: OnXid, clock: Clock) -> None:
        self._driver = driver
        self._on_xid = on_xid
        self._clock = clock
        self._gpu_at: dict[int, int] = {}
        self._event_set: Any = None

    def add(self, handle: Any, gpu: int) -> None:
        """Watch a card too, if it offers XID events.

        The card is remembered by its handle's address: once it is lost, the driver no longer
        says which one a handle is.

        Raises:
            GpuSourceError: the driver as a whole is gone.
        """
        xid = self._driver.nvml.nvmlEventTypeXidCriticalError
        try:
            if self._event_set is None:
                self._event_set = self._driver.call("nvmlEventSetCreate")
            offered = self._driver.call("nvmlDeviceGetSupportedEventTypes", handle)
            if not offered & xid:
                return
            self._driver.call("nvmlDeviceRegisterEvents", handle, xid, self._event_set)
        except (NotOffered, ReadFailed):
            return
        self._gpu_at[_address(handle)] = gpu

    @property
    def is_live(self) -> bool:
        """Whether any card offers XIDs."""
        return bool(self._gpu_at)

    def start(self) -> None:
        """Wait in a thread that ends with the process."""
        if self.is_live:
            threading.Thread(target=self._run, name="xid watch", daemon=True).start()

    def _run(self) -> None:
        nvml = self._driver.nvml
        while True:
            try:
                event = nvml.nvmlEventSetWait_v2(self._event_set, WAIT_MS)
            except nvml.NVMLError_Timeout:
                continue
            except nvml.NVMLError_Uninitialized:
                return
            except nvml.NVMLError:
                # a lost card makes every wait fail at once; others may still have something to say
                time.sleep(PAUSE_AFTER_ERROR_S)
                continue
            gpu = self._gpu_at.get(_address(event.device))
            self._on_xid(self._clock.monotonic(), gpu, int(event.eventData))


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
