"""One thing that the kernel said about a card."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_dash.model.log import Severity

PCI_ADDRESS = r"(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?)"
"""A pattern with the group ``pci``."""


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """What a line, or several together, say."""

    kind: str
    """``xid sxid fallen_off_bus throttle over_temperature ras ring_timeout reset page_fault``."""
    severity: Severity
    pci_bus_id: str
    """As the kernel writes it; empty: the line does not say."""
    subject: str
    """What it is about: the error in words, a ring, a reset's stage."""
    message: str
    """The line itself, without control sequences."""
    xid: int | None = None
    caused_by: int | None = None
    """An earlier XID that the line names as its cause."""
    process: str = ""
    pid: int | None = None
    count: int | None = None
    immediate_action: str = ""
    follow_up_action: str = ""
