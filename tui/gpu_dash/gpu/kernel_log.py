"""GPU events in the kernel's log: XID, SXid, a lost card, amdgpu resets and thermal lines. Pure.

Lines come with any prefix (dmesg, ``dmesg --decode``, journal, ``/dev/kmsg``), so patterns are
searched for, not matched from the start. Some messages go over several lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpu_dash.gpu.amdgpu_log import amdgpu_event
from gpu_dash.gpu.kernel_event import PCI_ADDRESS, KernelEvent
from gpu_dash.gpu.values import kernel_bus_id
from gpu_dash.gpu.xid import xid_severity
from gpu_dash.gpu.xid_catalog import xid_actions
from gpu_dash.model.log import Severity
from gpu_dash.model.text import strip_controls

_XID = re.compile(
    rf"NVRM: Xid \((?:PCI:)?{PCI_ADDRESS}(?: GPU-I:\w+)?\): (?P<code>\d+)(?:, (?P<rest>.*))?"
)
_SXID = re.compile(rf"SXid \((?:PCI:)?{PCI_ADDRESS}\): (?P<code>\d+)(?:, (?P<rest>.*))?")
_CAUSED_BY = re.compile(r"previous Xid (\d+)", re.IGNORECASE)
_PROCESS = re.compile(r"\bname='?(?!<unknown>)([^,\s']+)")
_PID = re.compile(r"\bpid='?(\d+)")
_RECOVERY = re.compile(r"to 0x[0-9a-f]+ \(([^)]*)\)", re.IGNORECASE)
_NVRM_GPU = re.compile(rf"NVRM: (?:The NVIDIA GPU|GPU at(?: PCI:)?|GPU) {PCI_ADDRESS}")
_OFF_BUS = re.compile(r"fallen off the bus", re.IGNORECASE)
_FIELD = re.compile(r"^(?:pid=\S+|name=\S+)$")

_SUBJECT_OF_XID = {
    13: "graphics exception",
    31: "GPU memory page fault",
    43: "GPU stopped processing",
    45: "channel preempted",
    48: "double-bit ECC",
    62: "PMU halt",
    63: "row remap",
    64: "row remap failure",
    74: "NVLink error",
    79: "fallen off the bus",
    92: "high single-bit ECC rate",
    94: "contained memory error",
    95: "uncontained memory error",
    109: "CTX SWITCH TIMEOUT",
    119: "GSP RPC timeout",
    120: "GSP error",
    140: "unrecovered ECC",
    143: "GPU init error",
    154: "recovery action",
}
_NVLINK5 = (144, 145, 146, 147, 149, 150)


def read_kernel_log(lines: Iterable[str]) -> Iterator[KernelEvent]:
    """The events in lines of a kernel log, in order.

    Args:
        lines: with or without their prefixes.
    """
    reader = KernelLogReader()
    for line in lines:
        yield from reader.read(line)


class KernelLogReader:
    """Reads a log line by line and remembers what goes over several lines."""

    def __init__(self) -> None:
        self._named_gpu = ""

    def read(self, line: str) -> list[KernelEvent]:
        """The events of one more line: none or one."""
        line = strip_controls(line.rstrip("\n"))
        for pattern, read in ((_XID, _xid), (_SXID, _sxid)):
            match = pattern.search(line)
            if match is not None:
                return [read(match, line)]
        event = self._off_bus(line) if "NVRM" in line else amdgpu_event(line)
        return [] if event is None else [event]

    def _off_bus(self, line: str) -> KernelEvent | None:
        """Without an XID the sentence is split: the address on one line, the fall on a later."""
        named = _NVRM_GPU.search(line)
        if named is not None:
            self._named_gpu = kernel_bus_id(named["pci"])
        if not _OFF_BUS.search(line):
            return None
        actions = xid_actions(79)
        bus_id, self._named_gpu = self._named_gpu, ""
        return KernelEvent(
            kind="fallen_off_bus",
            severity=Severity.CRITICAL,
            pci_bus_id=bus_id,
            subject="fallen off the bus",
            message=line.strip(),
            immediate_action=actions.immediate,
            follow_up_action=actions.follow_up,
        )


def _xid(match: re.Match[str], line: str) -> KernelEvent:
    code, rest = int(match["code"]), match["rest"] or ""
    cause = _CAUSED_BY.search(rest)
    process, pid = _PROCESS.search(rest), _PID.search(rest)
    actions = xid_actions(code)
    recovery = _RECOVERY.search(rest) if code == 154 else None
    return KernelEvent(
        kind="xid",
        severity=_severity(code, rest),
        pci_bus_id=kernel_bus_id(match["pci"]),
        subject=_subject(code, rest),
        message=line.strip(),
        xid=code,
        caused_by=None if cause is None else int(cause[1]),
        process="" if process is None else process[1],
        pid=None if pid is None else int(pid[1]),
        immediate_action=actions.immediate if recovery is None else recovery[1],
        follow_up_action=actions.follow_up,
    )


def _severity(code: int, rest: str) -> Severity:
    if code in _NVLINK5:
        return (
            Severity.WARNING if re.search(r"non-?fatal", rest, re.IGNORECASE) else Severity.CRITICAL
        )
    return xid_severity(code)


def _subject(code: int, rest: str) -> str:
    if code in _NVLINK5:
        return f"NVLINK {rest.split()[0]}" if rest else "NVLink 5 error"
    if code in _SUBJECT_OF_XID:
        return _SUBJECT_OF_XID[code]
    parts = [part for part in rest.split(", ") if not _FIELD.match(part)]
    return parts[0].strip() if parts else f"Xid {code}"


_SXID_PREFIX = re.compile(r"(?:(?:non-)?fatal,\s*)?(?:link \d+\s*)?", re.IGNORECASE)
_SXID_SUBJECTS = {
    11012: "ingress invalid ACL",
    12028: "egress non-posted PRIV error",
    20034: "LTSSM fault up: a link went down",
}


def _sxid(match: re.Match[str], line: str) -> KernelEvent:
    code, rest = int(match["code"]), match["rest"] or ""
    is_fatal = re.search(r"(?<!non-)\bfatal\b", rest, re.IGNORECASE) is not None
    name = _SXID_SUBJECTS.get(code)
    if rest.startswith("Data"):
        subject = "data line" if name is None else f"data line ({name})"
    else:
        subject = _SXID_PREFIX.sub("", rest).strip() or name or f"SXid {code}"
    return KernelEvent(
        kind="sxid",
        severity=Severity.CRITICAL if is_fatal else Severity.ERROR,
        pci_bus_id=kernel_bus_id(match["pci"]),
        subject=subject,
        message=line.strip(),
        xid=code,
        immediate_action="a fatal one: stop all jobs, reset the GPUs and NVSwitches of the host",
        follow_up_action="the fabric manager's log; contact support if it returns",
    )
