"""The last line: the keys that work now, and what they would do."""

from __future__ import annotations

from gpu_dash.model.commands import Command
from gpu_dash.ui.level_keys import PRESETS
from gpu_dash.ui.load_keys import (
    control_offer,
    launch_offer,
    load_now,
    load_offer,
    stop_server_offer,
)
from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.view import View

Hint = tuple[str, str]
_GAP = 2
_WIDE = 100
"""Cells from which the presets are named."""


def key_bar(view: View, launch: Command | None, width: int, *, has_profiles: bool = False) -> Row:
    """As many hints as fit; help and leaving are always there."""
    always: list[Hint] = [("?", "keys"), ("q", "leave")]
    row = Row()
    room = width - sum(_size(hint) for hint in always)
    for hint in _hints(view, launch, wide=width >= _WIDE, has_profiles=has_profiles):
        if row.width + _size(hint) <= room:
            _add(row, hint)
    for hint in always:
        _add(row, hint)
    return row.fit(width)


def _hints(view: View, launch: Command | None, *, wide: bool, has_profiles: bool) -> list[Hint]:
    if view.play is not None:
        play = "pause" if view.play.playing else "play"
        return [("space", play), ("←→", "10 s"), ("⇧←→", "60 s"), ("<>", "speed"),
                ("t", "window"), ("z", "zoom"), ("/", "search"), ("f", "filter")]  # fmt: skip
    keys_by_label: dict[str, list[str]] = {}
    for key in "+-][r0o":
        offer = load_offer(key, view)
        if offer.command is not None:
            keys_by_label.setdefault(offer.label, []).append(key)
    hints: list[Hint] = [(" ".join(keys), label) for label, keys in keys_by_label.items()]
    if wide and any(load_offer(key, view).command is not None for key in PRESETS):
        unit = "/s" if load_now(view).rate is not None else ""
        hints.append(("1…9", f"{min(PRESETS.values())}…{max(PRESETS.values())}{unit}"))
    for key, offer in (
        ("c", control_offer(view)),
        ("l", launch_offer(view, launch)),
        ("s", stop_server_offer(view)),
    ):
        if offer.command is not None:
            hints.append((key, offer.label))
    if has_profiles and not view.server_is_up:
        hints.append(("p", "profiles"))
    return [
        *hints,
        ("e", "finding"),
        ("/", "search"),
        ("f", "filter"),
        ("t", "window"),
        ("z", "zoom"),
        ("i", "cards"),
    ]


def _size(hint: Hint) -> int:
    return Row([(hint[0], Role.KEY), (hint[1], Role.DIM)]).width + 1 + _GAP


def _add(row: Row, hint: Hint) -> None:
    row.add(hint[0], Role.KEY).add(" " + hint[1], Role.DIM).add(" " * _GAP, Role.DIM)
