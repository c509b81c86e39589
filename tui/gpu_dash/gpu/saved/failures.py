"""What a GPU tool says instead of readings: no driver, a lost card, a mismatch."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpu_dash.gpu.values import kernel_bus_id
from gpu_dash.model.text import strip_controls


@dataclass(frozen=True, slots=True)
class SavedFailure:
    """A tool's complaint."""

    error: str
    """In two words: ``device lost``, ``no driver``."""
    pci_bus_id: str
    """Of the card it is about; empty: about all."""
    message: str
    """The tool's own words."""
    action: str


_PCI = re.compile(r"\b[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]\b")
_FAILURES = (
    (
        re.compile(r"GPU is lost|fallen off the bus", re.IGNORECASE),
        "device lost",
        "see `dmesg | grep -E 'Xid|fallen'`; it needs a reset or a reboot",
    ),
    (
        re.compile(r"GPU requires reset|reset required", re.IGNORECASE),
        "reset required",
        "drain the card, then `nvidia-smi --gpu-reset -i N`",
    ),
    (
        re.compile(r"Driver/library version mismatch", re.IGNORECASE),
        "version mismatch",
        "reboot, or unload and reload the nvidia modules",
    ),
    (
        re.compile(r"Unable to determine the device handle", re.IGNORECASE),
        "device unreachable",
        "see `dmesg | grep NVRM`; it mostly needs a reset or a reboot",
    ),
    (
        re.compile(r"couldn'?t communicate with the NVIDIA driver", re.IGNORECASE),
        "no driver",
        "load the driver (`modprobe nvidia`), then `dmesg | grep NVRM`",
    ),
    (
        re.compile(r"Failed to initialize NVML", re.IGNORECASE),
        "NVML failed",
        "in a container: restart it; else see `dmesg | grep NVRM`",
    ),
    (
        re.compile(r"No devices were found", re.IGNORECASE),
        "no devices",
        "see `lspci | grep -i nvidia` and `dmesg | grep NVRM`",
    ),
    (
        re.compile(r"No JSON data to report|ROCk module is NOT loaded|Driver not initialized"),
        "no driver",
        "load the driver (`modprobe amdgpu`); see `dmesg | grep amdgpu`",
    ),
)


def read_failures(text: str) -> list[SavedFailure]:
    """The complaints in a text, one a line, each by the first kind that fits."""
    failures = []
    for line in text.splitlines():
        for pattern, error, action in _FAILURES:
            if pattern.search(line):
                bus_id = _PCI.search(line)
                where = "" if bus_id is None else kernel_bus_id(bus_id[0])
                failures.append(SavedFailure(error, where, strip_controls(line.strip()), action))
                break
    return failures
