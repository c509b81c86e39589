"""Lines that the amdgpu driver writes to the kernel's log: resets, faults, heat. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gpu_dash.gpu.kernel_event import PCI_ADDRESS, KernelEvent
from gpu_dash.gpu.values import kernel_bus_id
from gpu_dash.model.log import Severity

_AMD = rf"amdgpu {PCI_ADDRESS}: (?:amdgpu: )?"
_THROTTLING = (
    r"(?:GPU thermal throttling temperature reached|GPU is throttled), expect performance decrease"
)
_TO_DO_AFTER_RESET = "the jobs on the card are lost; restart them, and see the lines before it"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A line of amdgpu's: how it looks and what it is."""

    regex: re.Pattern[str]
    kind: str
    severity: Severity
    subject: Callable[[re.Match[str]], str]
    action: str


def _amd(
    pattern: str,
    kind: str,
    severity: Severity,
    subject: str | Callable[[re.Match[str]], str],
    action: str,
) -> _Pattern:
    name = (lambda match: subject) if isinstance(subject, str) else subject
    return _Pattern(re.compile(f"{_AMD}(?:{pattern})", re.IGNORECASE), kind, severity, name, action)


def _group(match: re.Match[str]) -> str:
    return match["what"].strip().rstrip(".")


_AMD_PATTERNS = (
    _amd(
        rf"WARN: {_THROTTLING}\.? ?(?P<what>.*)",
        "throttle",
        Severity.WARNING,
        _group,
        "airflow, fans, inlet temperature; the power cap",
    ),
    _amd(
        r"(?:ERROR: )?(?:GPU over temperature range\s?\(SW CTF\)|"
        r"GPU HW Critical Temperature Fault(?:\(aka CTF\))?|GPU over temperature range\s?"
        r"\(HW CTF\)) detected|ERROR: System is going to shutdown due to GPU [SH]W CTF",
        "over_temperature",
        Severity.CRITICAL,
        "critical temperature fault",
        "the host may power off: stop the load now; airflow, fans, neighbours",
    ),
    _amd(
        r"(?P<what>(?:un)?correctable) hardware error ?\(ERREVENT_ATHUB_INTERRUPT\) detected",
        "ras",
        Severity.CRITICAL,
        lambda match: f"{match['what'].lower()} athub",
        "a reset of the card follows; `amd-smi metric --ecc`",
    ),
    _amd(
        r"(?:socket: \d+, die: \d+,? ?)?(?P<count>\d+) (?:new )?"
        r"(?P<what>(?:un)?correctable) hardware errors? detected in (?:total in )?"
        r"(?P<block>\w+) block",
        "ras",
        Severity.WARNING,
        lambda match: f"{match['what']} {match['block']}",
        "`amd-smi metric --ecc`; a count that jumps by 0xFFFF0 on a suspended card is no fault",
    ),
    _amd(
        r"(?:\[drm\] \*ERROR\* )?ring (?P<what>\S+) timeout",
        "ring_timeout",
        Severity.ERROR,
        _group,
        "the process on the ring; a reset follows",
    ),
    _amd(
        r"Ring \S+ reset failed",
        "reset",
        Severity.ERROR,
        "ring reset failed",
        "a reset of the whole GPU follows",
    ),
    _amd(
        r"Ring \S+ reset succee?ded",
        "reset",
        Severity.WARNING,
        "ring reset succeeded",
        "only the job on this ring is lost",
    ),
    _amd(
        r"(?:\[drm\] )?device wedged, but recovered through reset",
        "reset",
        Severity.WARNING,
        "wedged but recovered",
        "only the jobs of that queue are lost",
    ),
    _amd(
        r"(?:\[drm\] )?device wedged, needs recovery",
        "reset",
        Severity.CRITICAL,
        "wedged, needs recovery",
        "reload amdgpu or reboot the host",
    ),
    _amd(
        r"device lost from bus",
        "fallen_off_bus",
        Severity.CRITICAL,
        "device lost from bus",
        "power cables and seat of the card; then reboot the host",
    ),
    _amd(r"GPU reset begin", "reset", Severity.ERROR, "GPU reset begin", _TO_DO_AFTER_RESET),
    _amd(
        r"(?P<what>(?:MODE[12]|BACO|psp mode ?1|mode[12]) reset)\b",
        "reset",
        Severity.ERROR,
        _group,
        _TO_DO_AFTER_RESET,
    ),
    _amd(
        r"GPU reset\(?\d*\)? ?succeeded|GPU reset succeeded",
        "reset",
        Severity.WARNING,
        "GPU reset succeeded",
        _TO_DO_AFTER_RESET,
    ),
    _amd(
        r"GPU reset(?:\(\d+\))? (?:end with ret|failed)",
        "reset",
        Severity.CRITICAL,
        "GPU reset failed",
        "reboot the host",
    ),
    _amd(
        r"\[(?P<what>\w+?)\d*\] (?:retry |no-retry )?page fault",
        "page_fault",
        Severity.ERROR,
        _group,
        "the process that the next lines name; mostly the application",
    ),
)
_OLD_RING = re.compile(r"\[drm:amdgpu_job_timedout.*\*ERROR\* ring (?P<what>\S+) timeout")


def amdgpu_event(line: str) -> KernelEvent | None:
    """The event in a line of the amdgpu driver's; ``None`` if it is another line."""
    old = _OLD_RING.search(line)
    if old is not None:
        return KernelEvent("ring_timeout", Severity.ERROR, "", old["what"].strip(","), line.strip())
    for pattern in _AMD_PATTERNS:
        match = pattern.regex.search(line)
        if match is not None:
            groups = match.groupdict()
            return KernelEvent(
                kind=pattern.kind,
                severity=pattern.severity,
                pci_bus_id=kernel_bus_id(match["pci"]),
                subject=pattern.subject(match).strip(","),
                message=line.strip(),
                count=None if groups.get("count") is None else int(groups["count"]),
                immediate_action=pattern.action,
            )
    return None
