"""How roles look.

The sixteen colours of the person's own terminal, on its own background: they suit a light and a
dark one, need no true colour over ssh, and are a few bytes each. Only grey is taken from the 256,
because the sixteen have none that is readable on both. Every role that carries a meaning differs
without colour too, by weight or by being reversed.
"""

from __future__ import annotations

from rich.style import Style

from gpu_dash.ui.render.row import Role

COLOURED: dict[Role, Style] = {
    Role.PLAIN: Style.null(),
    Role.DIM: Style(color="color(245)"),
    Role.STRONG: Style(bold=True),
    Role.GOOD: Style(color="green"),
    Role.WARN: Style(color="yellow"),
    Role.ALARM: Style(color="red", bold=True),
    Role.SHOUT: Style(color="red", bold=True, reverse=True),
    Role.ACCENT: Style(color="cyan"),
    Role.SECOND: Style(color="magenta"),
    Role.KEY: Style(color="cyan", bold=True),
    Role.MATCH: Style(reverse=True),
}
UNCOLOURED: dict[Role, Style] = {
    Role.PLAIN: Style.null(),
    Role.DIM: Style(dim=True),
    Role.STRONG: Style(bold=True),
    Role.GOOD: Style.null(),
    Role.WARN: Style(bold=True),
    Role.ALARM: Style(bold=True),
    Role.SHOUT: Style(bold=True, reverse=True),
    Role.ACCENT: Style.null(),
    Role.SECOND: Style.null(),
    Role.KEY: Style(bold=True, underline=True),
    Role.MATCH: Style(reverse=True),
}
"""For ``NO_COLOR``."""


def styles_for(*, no_color: bool, color_system: str | None) -> dict[Role, Style]:
    """The styles that this terminal can show.

    Args:
        no_color: the person wants none.
        color_system: what the terminal says of itself, in Rich's words; with only sixteen colours
            grey would become white.
    """
    if no_color or color_system is None:
        return UNCOLOURED
    if color_system == "standard":
        return COLOURED | {Role.DIM: UNCOLOURED[Role.DIM]}
    return COLOURED
