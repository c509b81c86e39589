"""Bars of one row."""

from __future__ import annotations

from gpu_dash.ui.render.row import Role, Run

FULL = "━"
REST = "─"


def bar(fraction: float | None, width: int, role: Role = Role.ACCENT) -> list[Run]:
    """A line that is heavy up to ``fraction``; the two weights differ without colour too."""
    if fraction is None:
        return [(" " * width, Role.PLAIN)]
    filled = round(min(1.0, max(0.0, fraction)) * width)
    return [(FULL * filled, role), (REST * (width - filled), Role.DIM)]
