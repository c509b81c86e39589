"""The newest finding, or what the last key met."""

from __future__ import annotations

from gpu_dash.model.events import Finding, Notice
from gpu_dash.model.log import Severity
from gpu_dash.ui.render.format import ago
from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.view import View

SIGNS = {
    Severity.INFO: ("·", Role.DIM),
    Severity.WARNING: ("!", Role.WARN),
    Severity.ERROR: ("✗", Role.ALARM),
    Severity.CRITICAL: ("✗", Role.SHOUT),
}
_OLD_S = 300.0
"""A finding older than this no longer shouts."""


def notice_rows(view: View, width: int, height: int) -> list[Row]:
    """The message of the last key if it is fresh, else the newest finding and its first check."""
    if view.message is not None:
        role = Role.ALARM if view.message.is_error else Role.ACCENT
        rows = [Row([(view.message.text, role)]).fit(width)]
    elif view.is_lost:
        rows = [Row([(view.link.detail, Role.WARN)]).fit(width)]
    else:
        newest = newest_of(view)
        rows = [_finding(view, newest, width)] if newest is not None else [
            Row([("· no finding", Role.DIM)]).fit(width)
        ]  # fmt: skip
        if height > 1 and isinstance(newest, Finding) and newest.first_check:
            rows.append(Row([("  check ", Role.DIM), (newest.first_check, Role.PLAIN)]).fit(width))
    while len(rows) < height:
        rows.append(Row().fit(width))
    return rows[:height]


def newest_of(view: View) -> Finding | Notice | None:
    """The newest finding or notice."""
    candidates: list[Finding | Notice] = []
    if view.store.findings:
        candidates.append(view.store.findings[-1])
    if view.store.notices:
        candidates.append(view.store.notices[-1])
    return max(candidates, key=lambda item: item.at, default=None)


def _finding(view: View, item: Finding | Notice, width: int) -> Row:
    age = view.now - item.at
    sign, role = SIGNS[item.severity]
    if age > _OLD_S and role is Role.SHOUT:
        role = Role.ALARM
    row = Row([(f"{sign} ", role)])
    if isinstance(item, Finding):
        row.add(item.kind, role).add(f" {item.subject}" if item.subject else "", Role.STRONG)
        row.add(f" {ago(age)}  ", Role.DIM).add(item.message)
    else:
        row.add(f"{ago(age)}  ", Role.DIM).add(item.text)
    return row.fit(width)
