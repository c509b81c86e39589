"""The newest finding, or what the last key met."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_dash.agent.store import Store
from gpu_dash.logs.grammar import parse
from gpu_dash.model.events import Finding
from gpu_dash.model.log import Severity
from gpu_dash.ui.render.format import ago, duration
from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.view import View

SIGNS = {
    Severity.INFO: ("·", Role.DIM),
    Severity.WARNING: ("!", Role.WARN),
    Severity.ERROR: ("✗", Role.ALARM),
    Severity.CRITICAL: ("✗", Role.SHOUT),
}
_OLD_S = 300.0
"""What is older than this no longer shouts."""
_BURST_S = 60.0
"""A crash is many findings: those so close before the newest are one story, told by its cause."""


@dataclass(frozen=True)
class Said:
    """One thing that the notice line can say."""

    at: float
    severity: Severity
    word: str
    subject: str
    text: str
    first_check: str = ""


def notice_rows(view: View, width: int, height: int) -> list[Row]:
    """The message of the last key if it is fresh, else the newest finding and its first check."""
    newest = newest_of(view.store)
    if view.message is not None:
        role = Role.ALARM if view.message.is_error else Role.ACCENT
        rows = [Row([(view.message.text, role)])]
    elif view.is_lost:
        rows = [Row([(view.link.detail, Role.WARN)])]
    elif newest is None:
        rows = [Row([("· no finding", Role.DIM)])]
    else:
        rows = [_row(view, newest)]
        if newest.first_check:
            rows.append(Row([("  check ", Role.DIM), (newest.first_check, Role.PLAIN)]))
    return [row.fit(width) for row in rows[:height]]


def newest_of(store: Store) -> Said | None:
    """The newest of findings, notices and throttles that are an alarm."""
    said: list[Said] = []
    if store.findings:
        finding = telling(store.findings)
        said.append(
            Said(
                # the cause speaks for the whole story, so it is as new as the story's end
                at=store.findings[-1].at,
                severity=finding.severity,
                word=finding.kind,
                subject=finding.subject,
                text=_told(finding),
                first_check=finding.first_check,
            )
        )
    if store.notices:
        notice = store.notices[-1]
        said.append(Said(notice.at, notice.severity, "", "", notice.text))
    throttle = _newest_throttle(store)
    if throttle is not None:
        said.append(throttle)
    return max(said, key=lambda item: item.at, default=None)


def _told(finding: Finding) -> str:
    """What a finding says; of a line of the log only the message, since its head takes the room."""
    if finding.line is None:
        return finding.message
    return parse(finding.message).message.strip() or finding.message


def telling(findings: list[Finding]) -> Finding:
    """The newest finding, or the cause if that one only followed from another."""
    newest = findings[-1]
    for finding in reversed(findings):
        if newest.at - finding.at > _BURST_S:
            break
        if finding.root and finding.source != "server":
            return finding
    return newest


def _newest_throttle(store: Store) -> Said | None:
    for span in reversed(store.throttle_spans):
        if not span.kind.is_alarm:
            continue
        words = ["+".join(span.reasons)]
        if span.temperature_celsius is not None:
            words.append(f"{span.temperature_celsius:.0f} °C")
        if span.lowest_sm_clock_mhz is not None:
            words.append(f"SM clock {span.lowest_sm_clock_mhz:.0f} MHz")
        severity = Severity.ERROR
        if span.ended_at is not None:
            words.append(f"over after {duration(span.ended_at - span.began_at)}")
            severity = Severity.WARNING
        word = f"{span.kind.value} throttle"
        return Said(span.began_at, severity, word, f"gpu:{span.gpu}", "  ".join(words))
    return None


def _row(view: View, said: Said) -> Row:
    age = view.now - said.at
    sign, role = SIGNS[said.severity]
    if age > _OLD_S and role is Role.SHOUT:
        role = Role.ALARM
    row = Row([(f"{sign} {said.word}" if said.word else sign, role), (" ", Role.PLAIN)])
    if said.subject:
        row.add(f"{said.subject} ", Role.STRONG)
    return row.add(f"{ago(age)}  ", Role.DIM).add(said.text)
