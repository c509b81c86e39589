"""The bar of a replay."""

from __future__ import annotations

from gpu_dash.ui.render.format import clock
from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.view import View


def play_rows(view: View, width: int, height: int) -> list[Row]:
    """State, place, length and speed; nothing when this is no replay."""
    if view.play is None or height == 0:
        return []
    play = view.play
    word = "▶ PLAYING" if play.playing else "‖ PAUSED "
    row = Row([(f"{word} ", Role.GOOD if play.playing else Role.WARN)])
    row.add(f"{clock(play.position_s)} / {clock(play.duration_s)} ×{play.speed:g} ", Role.STRONG)
    length = width - row.width - 1
    if length > 4 and play.duration_s > 0:
        place = round(play.position_s / play.duration_s * (length - 1))
        row.add("━" * place, Role.ACCENT).add("●", Role.STRONG)
        row.add("─" * (length - 1 - place), Role.DIM)
    return [row.fit(width)]
