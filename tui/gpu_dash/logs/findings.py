"""What was found so far, repeats folded, and what of it is news."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from gpu_dash.logs.incident import WINDOW_S, Incident, OpenFinding
from gpu_dash.logs.rules.kinds import CALLER_KINDS, Kind
from gpu_dash.logs.rules.rule import Weight
from gpu_dash.model.events import Finding

MOST_OPEN = 512
"""Findings that can still be repeated or learned about."""


class Findings:
    """The findings of one log, in incidents.

    A finding is handed out when it is new and again when more is known about it. Of a count alone
    that is so when it has doubled, so that a storm of a thousand lines is ten events.
    """

    def __init__(self) -> None:
        self._open: dict[Hashable, OpenFinding] = {}
        self._changed: dict[int, OpenFinding] = {}
        """By line: those of which something is not yet handed out."""
        self._incident = Incident()
        self._callers = {kind: Incident() for kind in CALLER_KINDS}

    @property
    def cause(self) -> OpenFinding | None:
        """What the server suffers from, as far as it is known."""
        return self._incident.root

    def add(self, key: Hashable, new: OpenFinding) -> OpenFinding:
        """Take a finding; gives the one that it repeats, or itself.

        Args:
            key: the same for findings that say the same.
            new: the finding.
        """
        known = self._open.get(key)
        if known is not None and not _is_apart(known, new):
            known.count += 1
            known.moment = new.moment or known.moment
            self.changed(known)
            return known
        if known is not None:
            known.is_over = True
        elif len(self._open) >= MOST_OPEN:
            self._open.pop(next(iter(self._open))).is_over = True
        self._open[key] = new
        incident = self._callers.get(new.kind.name, self._incident)
        before = incident.root
        incident.admit(new)
        if before is not None:
            self.changed(before)
        self.changed(new)
        return new

    def correct(self, finding: OpenFinding, kind: Kind) -> None:
        """The same was said again, and more exactly."""
        finding.kind, finding.severity = kind, kind.severity
        finding.count += 1
        self.changed(finding)

    def changed(self, finding: OpenFinding) -> None:
        """More is known about a finding."""
        self._changed[finding.line] = finding

    def close(self) -> None:
        """Another server begins: nothing from here on belongs to what was found before."""
        self._incident.close()
        for incident in self._callers.values():
            incident.close()
        for finding in self._open.values():
            finding.is_over = True
        self._open.clear()

    def news(self, *, every_count: bool) -> list[Finding]:
        """What is to be handed out now.

        Args:
            every_count: hand out counts that have not doubled, too.
        """
        news = []
        waiting: dict[int, OpenFinding] = {}
        for line, open_finding in self._changed.items():
            finding, said = open_finding.finding(), open_finding.said
            if finding == said:
                continue
            tell_all = every_count or open_finding.is_over
            if said is None or tell_all or _is_worth_saying(finding, said):
                open_finding.said = finding
                news.append(finding)
            else:
                waiting[line] = open_finding
        self._changed = waiting
        return news


def _is_worth_saying(finding: Finding, said: Finding) -> bool:
    if finding.count >= 2 * said.count:
        return True
    return msgspec.structs.replace(finding, count=said.count) != said


def _is_apart(known: OpenFinding, new: OpenFinding) -> bool:
    """Whether the same words mean another event: minutes lie between them."""
    if known.weight in (Weight.CONDITION, Weight.WAITING):
        return False
    if known.moment is None or new.moment is None:
        return False
    return abs(new.moment - known.moment) > WINDOW_S
