"""Findings of a server's log."""

from __future__ import annotations

from gpu_dash.model.events import Finding
from gpu_dash.model.log import Severity


def found(
    line: int, message: str, *, severity: Severity = Severity.ERROR, root: bool = True
) -> Finding:
    """A finding in a line."""
    return Finding(
        at=0,
        kind="k",
        severity=severity,
        source="log",
        message=message,
        line=line,
        root=root,
    )
