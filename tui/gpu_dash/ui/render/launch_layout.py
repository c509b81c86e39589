"""Where the parts of the launch screen stand: beside each other where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu_dash.model.server import ServerState
from gpu_dash.ui.launch_desk import Choice
from gpu_dash.ui.load_keys import OVER
from gpu_dash.ui.render.launch_rows import (
    DOCTOR,
    Looked,
    choice_rows,
    detail_rows,
    first_row_of,
    list_width,
)
from gpu_dash.ui.render.row import Role, Row

_BESIDE_FROM_WIDTH = 110
_LIST_ROWS = 7
_EDGES = 3
"""Title, message and keys."""


@dataclass(frozen=True)
class LaunchView:
    """The one instant that a frame of the launch screen shows."""

    choices: Sequence[Choice]
    chosen: int
    looked: Looked
    message: str = ""
    server: ServerState = ServerState.NONE
    top: int = 0
    """First row of the details that is seen."""
    follows_doctor: bool = False
    """The newest check is kept in sight."""


@dataclass(frozen=True)
class LaunchRows:
    """A frame, and where its details begin."""

    rows: list[Row] = field(default_factory=list)
    top: int = 0


def launch_rows(view: LaunchView, width: int, height: int) -> LaunchRows:
    """The whole screen."""
    beside = width >= _BESIDE_FROM_WIDTH
    body = max(1, height - _EDGES)
    list_height = body if beside else min(_LIST_ROWS, len(view.choices), max(1, body // 3))
    names_width = list_width(view.choices) if beside else width
    detail_width = width - names_width - 2 if beside else width - 1
    room = body if beside else max(1, body - list_height - 1)
    details = detail_rows(view.looked, detail_width)
    top = _top(view, details, room)
    seen = details[top : top + room]
    names = choice_rows(view.choices, view.chosen, names_width, list_height)
    rows = [_title(view, width)]
    below = len(details) - top - len(seen)
    if beside:
        rows += _side_by_side(names, seen, names_width, width, body)
    else:
        rows += names
        rows.append(_rule(view, top, below, width))
        rows += [Row([(" ", Role.PLAIN), *row]).fit(width) for row in seen]
    rows += [Row().fit(width) for _ in range(1 + body - len(rows))]
    message = view.message or (f"▼ {below} more rows: PgDn" if beside and below else "")
    role = Role.ALARM if view.message.startswith("✗") else Role.STRONG
    rows.append(Row([(message, role if view.message else Role.DIM)]).fit(width))
    return LaunchRows([*rows, _keys(view, width)], top)


def _top(view: LaunchView, details: Sequence[Row], room: int) -> int:
    last = max(0, len(details) - room)
    if view.follows_doctor:
        return min(last, max(first_row_of(details, DOCTOR), last if view.looked.checks else 0))
    return min(view.top, last)


def _title(view: LaunchView, width: int) -> Row:
    row = Row([("gpu-dash ", Role.DIM), ("before a launch", Role.STRONG)])
    row.add(f"  {len(view.choices)} profiles, * your own", Role.DIM)
    if view.server in OVER:
        return row.right([("○ no server runs", Role.DIM)], width)
    return row.right(
        [(f"● a server is {view.server}: s in the dashboard stops it", Role.WARN)], width
    )


def _rule(view: LaunchView, top: int, below: int, width: int) -> Row:
    name = view.choices[view.chosen].name if view.choices else "no profile"
    row = Row([("── ", Role.DIM), (name, Role.ACCENT), (" ", Role.PLAIN)])
    more = f" {'▲' if top else ''}{f'▼ {below} more rows: PgDn' if below else ''} "
    tail = [(more if more.strip() else "", Role.DIM), ("──", Role.DIM)]
    gap = max(0, width - row.width - Row(tail).width)
    return row.add("─" * gap, Role.DIM).extend(tail).fit(width)


def _side_by_side(
    names: list[Row], details: Sequence[Row], names_width: int, width: int, height: int
) -> list[Row]:
    rows = []
    for at in range(height):
        left = names[at] if at < len(names) else Row().fit(names_width)
        row = Row(left).add("│ ", Role.DIM)
        rows.append((row.extend(details[at]) if at < len(details) else row).fit(width))
    return rows


def _keys(view: LaunchView, width: int) -> Row:
    prospect = view.looked.prospect
    hints = [("↑↓", "choose"), ("l", "launch"), ("d", "doctor")]
    if prospect is not None and prospect.profile.target is not None:
        hints[1] = ("l", "watch it")
    if prospect is not None and prospect.corrected is not None and prospect.corrected.is_changed:
        taken = "as it was" if view.looked.accepted else "take corrections"
        hints += [("a", taken), ("w", "write them")]
    if prospect is not None and prospect.refused:
        hints.append(("F", "force"))
    row = Row()
    for key, words in [*hints, ("Esc", "back")]:
        row.add(key, Role.KEY).add(f" {words}  ", Role.DIM)
    return row.fit(width)
