"""NVIDIA's XID codes that matter to inference: what they mean and what to check first.

Meanings and advice follow NVIDIA's XID catalogue. An application's own fault is a warning about
the card, though the application did not survive it.
"""

from __future__ import annotations

from typing import NamedTuple

from gpu_dash.model.events import Finding
from gpu_dash.model.log import Severity


class Xid(NamedTuple):
    """What NVIDIA says about one code."""

    severity: Severity
    meaning: str
    first_check: str


_RESET = "drain the card and reset it (`nvidia-smi --gpu-reset -i N`); if it returns, support"
_APPLICATION = "the worker's CUDA error in the log; the same code on one card only is hardware"
_NVLINK = "`nvidia-smi nvlink -e` on both ends, fabric manager's log; then reset all linked cards"

_XIDS = {
    8: Xid(Severity.ERROR, "GPU stopped processing", _APPLICATION),
    13: Xid(Severity.WARNING, "graphics engine exception, mostly by the application", _APPLICATION),
    31: Xid(Severity.WARNING, "GPU memory page fault, mostly by the application", _APPLICATION),
    43: Xid(Severity.WARNING, "GPU stopped processing: the application faulted", _APPLICATION),
    45: Xid(
        Severity.INFO,
        "clean-up of an application that ended or faulted before",
        "the XID before it; alone after a stop it means nothing",
    ),
    46: Xid(Severity.ERROR, "GPU stopped answering", _RESET),
    48: Xid(Severity.CRITICAL, "double-bit ECC error", _RESET),
    62: Xid(Severity.ERROR, "internal micro-controller halt", _RESET),
    63: Xid(
        Severity.WARNING,
        "a memory row was remapped",
        "`nvidia-smi -q -d ROW_REMAPPER`; pending remaps need a reset at the next quiet moment",
    ),
    64: Xid(Severity.ERROR, "a memory row could not be remapped", _RESET),
    69: Xid(Severity.ERROR, "graphics engine class error", _APPLICATION),
    74: Xid(Severity.ERROR, "NVLink error", _NVLINK),
    79: Xid(
        Severity.CRITICAL,
        "GPU has fallen off the bus",
        "temperature and power just before; power cables, seat, riser; then reboot the host",
    ),
    92: Xid(
        Severity.WARNING,
        "high rate of single-bit ECC errors",
        "`nvidia-smi -q -d ECC`; watch whether it grows",
    ),
    94: Xid(
        Severity.ERROR,
        "contained memory error: only the application that met it is lost",
        "restart the application; `nvidia-smi -q -d ROW_REMAPPER` for pending remaps",
    ),
    95: Xid(Severity.CRITICAL, "uncontained memory error", _RESET),
    109: Xid(Severity.ERROR, "context switch time-out", _RESET),
    119: Xid(Severity.CRITICAL, "GSP firmware did not answer a call", _RESET),
    120: Xid(Severity.CRITICAL, "GSP firmware error", _RESET),
    140: Xid(Severity.CRITICAL, "ECC error that was not recovered", _RESET),
    143: Xid(Severity.CRITICAL, "GPU did not initialize", _RESET),
    154: Xid(
        Severity.WARNING,
        "the recovery that the driver advises has changed",
        "`nvidia-smi -q | grep -i recovery`: reset, reboot or drain as it says",
    ),
    **dict.fromkeys((144, 145, 146, 147, 149, 150), Xid(Severity.ERROR, "NVLink 5 error", _NVLINK)),
    155: Xid(Severity.ERROR, "NVLink software error", _NVLINK),
}
_UNKNOWN = Xid(Severity.ERROR, "no meaning known here", "this code in NVIDIA's XID catalogue")


def xid_severity(code: int) -> Severity:
    """How bad a code is for those who use the card."""
    return _XIDS.get(code, _UNKNOWN).severity


def xid_finding(at: float, gpu: int | None, code: int) -> Finding:
    """An XID as a finding.

    Args:
        at: monotonic moment of its arrival.
        gpu: index of the card; ``None`` if the driver did not say which.
        code: the XID.
    """
    xid = _XIDS.get(code, _UNKNOWN)
    return Finding(
        at=at,
        kind="xid",
        severity=xid.severity,
        source="gpu",
        subject="" if gpu is None else f"gpu:{gpu}",
        message=f"XID {code}: {xid.meaning}",
        first_check=xid.first_check,
    )
