"""How roles look.

The sixteen colours of the person's own terminal, on its own background: they suit a light and a
dark one, need no true colour over ssh, and are a few bytes each. Every role that carries a
meaning differs without colour too, by weight or by being reversed.
"""

from __future__ import annotations

from rich.style import Style

from gpu_dash.ui.render.row import Role

STYLES: dict[Role, Style] = {
    Role.PLAIN: Style.null(),
    Role.DIM: Style(dim=True),
    Role.STRONG: Style(bold=True),
    Role.GOOD: Style(color="green"),
    Role.WARN: Style(color="yellow"),
    Role.ALARM: Style(color="red", bold=True),
    Role.SHOUT: Style(color="red", bold=True, reverse=True),
    Role.ACCENT: Style(color="cyan"),
    Role.SECOND: Style(color="magenta"),
    Role.KEY: Style(bold=True, color="cyan"),
    Role.CURSOR: Style(reverse=True),
    Role.MATCH: Style(reverse=True, bold=True),
}
