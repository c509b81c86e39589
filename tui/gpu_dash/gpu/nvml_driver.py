"""One funnel for all calls to NVML: what its answers mean, and older names of its functions.

nvidia-ml-py (``import pynvml``) is imported when the driver is opened, so that nothing else
pays for it.
"""

from __future__ import annotations

import importlib
from typing import Any

from gpu_dash.gpu.backend import SourceAbsent
from gpu_dash.gpu.card import CardLost, NotOffered, ReadFailed
from gpu_dash.model.errors import GpuSourceError
from gpu_dash.model.text import one_line

_OLDER_OR_NEWER = {
    # before driver 535; removed with CUDA 14
    "nvmlDeviceGetCurrentClocksEventReasons": "nvmlDeviceGetCurrentClocksThrottleReasons",
    # the first is deprecated and goes with CUDA 14, the second came with driver 570
    "nvmlDeviceGetTemperature": "nvmlDeviceGetTemperatureV",
}

_WHAT_TO_DO = {
    "LIBRARY_NOT_FOUND": (
        "no NVIDIA driver on this host, or a container without its GPUs "
        "(docker: `--gpus all`; Kubernetes: an `nvidia.com/gpu` limit)"
    ),
    "DRIVER_NOT_LOADED": (
        "the kernel module is not loaded; try `modprobe nvidia`, then `dmesg | grep NVRM`"
    ),
    "LIB_RM_VERSION_MISMATCH": (
        "the driver's library was replaced under the running kernel module; "
        "reboot, or unload and reload the nvidia modules"
    ),
    "NO_PERMISSION": "this account may not open /dev/nvidia*; see their owner and group",
    "GPU_IS_LOST": "a card fell off the bus; see `dmesg | grep Xid`; it needs a reset or a reboot",
    "RESET_REQUIRED": "the card waits for a reset: drain it and reset it (`nvidia-smi -r -i N`)",
    "UNINITIALIZED": "the driver was unloaded or restarted",
    "UNKNOWN": (
        "in a container this follows `systemctl daemon-reload` on the host: restart the "
        "container; else see `dmesg | grep NVRM`"
    ),
}
_ABSENT = ("LIBRARY_NOT_FOUND", "DRIVER_NOT_LOADED")
_GONE = ("UNINITIALIZED", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH")
_NOT_FOUND = "NOT_FOUND"
_NOT_OFFERED = ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "ARGUMENT_VERSION_MISMATCH")


class NothingNew(ReadFailed):
    """The driver has no sample since the moment that was named."""


class NvmlDriver:
    """The loaded library.

    Raises:
        SourceAbsent: there is no driver.
        GpuSourceError: there is one, and it does not start; says what to do.
    """

    def __init__(self) -> None:
        self.nvml: Any = importlib.import_module("pynvml")
        self._names: dict[str, str] = {}
        self._codes = {
            getattr(self.nvml, f"NVML_ERROR_{name}"): name
            for name in (*_WHAT_TO_DO, *_NOT_OFFERED, _NOT_FOUND)
            if hasattr(self.nvml, f"NVML_ERROR_{name}")
        }
        try:
            self.nvml.nvmlInit()
        except self.nvml.NVMLError as error:
            kind = SourceAbsent if self._codes.get(error.value) in _ABSENT else GpuSourceError
            raise kind(f"NVML init failed: {self.explain(error)}") from error

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the binding.

        Raises:
            NotOffered: this card, driver or binding does not have it.
            CardLost: the card is gone.
            ReadFailed: any other answer that is no value.
            GpuSourceError: the driver as a whole is gone.
        """
        function = getattr(self.nvml, self._names.get(name, name), None)
        try:
            if function is None:
                raise self.nvml.NVMLError(self.nvml.NVML_ERROR_FUNCTION_NOT_FOUND)
            return function(*arguments)
        except self.nvml.NVMLError as error:
            code = self._codes.get(error.value)
            if code == "FUNCTION_NOT_FOUND" and name in _OLDER_OR_NEWER and name not in self._names:
                self._names[name] = _OLDER_OR_NEWER[name]
                return self.call(name, *arguments)
            raise self._meaning(name, code, error) from error

    def number(self, name: str, *arguments: Any, scale: float = 1.0) -> float | None:
        """Call a function that gives one number, divided by ``scale``; see :func:`known`.

        Raises:
            NotOffered: as :meth:`call`, which names the others too.
        """
        value = known(self.call(name, *arguments))
        return None if value is None else value / scale

    def check_field(self, answer: int, name: str) -> None:
        """Raise what a field's own answer in a batch of field values means."""
        if answer == self.nvml.NVML_SUCCESS:
            return
        error = self.nvml.NVMLError(answer)
        if answer == self.nvml.NVML_ERROR_INVALID_ARGUMENT:  # a field newer than the driver
            raise NotOffered(name) from error
        raise self._meaning(name, self._codes.get(answer), error) from error

    def explain(self, error: Exception) -> str:
        """NVML's own words, and what to do where that is known."""
        code = self._codes.get(getattr(error, "value", None))
        words = one_line(str(error)).rstrip(".")
        return f"{words}: {_WHAT_TO_DO[code]}" if code in _WHAT_TO_DO else words

    def _meaning(self, name: str, code: str | None, error: Exception) -> Exception:
        if code in _NOT_OFFERED:
            return NotOffered(name)
        if code in _GONE:
            return GpuSourceError(f"NVML no longer answers: {self.explain(error)}")
        if code == _NOT_FOUND:
            return NothingNew(self.explain(error))
        if code == "GPU_IS_LOST":
            return CardLost(self.explain(error))
        return ReadFailed(self.explain(error))


def known(value: float) -> float | None:
    """The value, unless it is all ones: what a sensor says that has none at the moment."""
    return None if value in (0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF) else value
