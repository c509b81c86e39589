"""What several sources say about one card, as one finding: NVML's XIDs and the kernel's log.

Neither has them all: NVML does not deliver some (79, 119, 120), and the kernel's log is not
readable everywhere. What both say comes once, by the card and the code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from gpu_dash.gpu.kernel_event import KernelEvent
from gpu_dash.gpu.xid import xid_finding
from gpu_dash.gpu.xid_catalog import xid_actions
from gpu_dash.model.events import Finding
from gpu_dash.model.gpu import GpuInfo

SAME_EVENT_S = 5.0
"""Within this time the same code of the same card is one event, whoever says it."""
_FALLEN_OFF_BUS = 79
_KINDS = {
    "sxid": "gpu_ecc_nvlink",
    "ras": "gpu_ecc_nvlink",
    "fallen_off_bus": "gpu_lost",
    "throttle": "thermal",
    "over_temperature": "thermal",
    "ring_timeout": "gpu_reset_amd",
    "reset": "gpu_reset_amd",
    "page_fault": "page_fault",
}


class HardwareEvents:
    """Makes findings of events, from any thread.

    Args:
        on_finding: called with each finding that is new.
    """

    def __init__(self, on_finding: Callable[[Finding], None]) -> None:
        self._on_finding = on_finding
        self._lock = threading.Lock()
        self._gpu_at: dict[str, int] = {}
        self._heard: dict[tuple[str, str], float] = {}

    def know(self, gpus: Iterable[GpuInfo]) -> None:
        """Remember where the cards are: one that is lost no longer says it itself."""
        self._gpu_at = {info.pci_bus_id: info.gpu for info in gpus if info.pci_bus_id}

    def xid(self, at: float, gpu: int | None, code: int) -> None:
        """Take an XID that NVML delivered."""
        actions = xid_actions(code)
        finding = replace(
            xid_finding(at, gpu, code),
            checks=(f"at once: {actions.immediate}", f"then: {actions.follow_up}"),
            root=code != 45,
        )
        self._tell(finding, f"xid {code}")

    def kernel(self, at: float, event: KernelEvent) -> None:
        """Take an event of the kernel's log."""
        gpu = self._gpu_at.get(event.pci_bus_id)
        if event.kind == "xid" and event.xid is not None:
            finding = xid_finding(at, gpu, event.xid)
            because = "" if event.caused_by is None else f", caused by XID {event.caused_by}"
            process = f" ({event.process})" if event.process else ""
            finding = replace(
                finding,
                severity=event.severity,
                message=f"{finding.message}{because}{process}",
            )
            key = f"xid {event.xid}"
        else:
            finding = Finding(
                at=at,
                kind=_KINDS[event.kind],
                severity=event.severity,
                source="kernel",
                message=f"{event.kind.replace('_', ' ')}: {event.subject}",
                first_check=event.immediate_action,
            )
            is_lost = event.kind == "fallen_off_bus"
            key = f"xid {_FALLEN_OFF_BUS}" if is_lost else f"{event.kind} {event.subject}"
        checks = tuple(
            f"{when}: {action}"
            for when, action in (
                ("at once", event.immediate_action),
                ("then", event.follow_up_action),
            )
            if action
        )
        self._tell(
            replace(
                finding,
                source="kernel",
                subject=event.pci_bus_id if gpu is None else f"gpu:{gpu}",
                checks=checks,
                root=event.xid != 45,
            ),
            key,
        )

    def _tell(self, finding: Finding, key: str) -> None:
        with self._lock:
            heard = self._heard.get((finding.subject, key))
            self._heard[finding.subject, key] = finding.at
            if heard is not None and finding.at - heard < SAME_EVENT_S:
                return
        self._on_finding(finding)
