"""Which finding is the cause and which ones followed from it.

A crash is told many times: by the worker that failed, by the engine that lost it, by the front
end that lost the engine, for each request. What belongs together is one incident, and its
heaviest member is the cause. As the order in a log is not the order of events, a finding that
was the cause may turn out to be a consequence when a heavier one arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpu_dash.logs.rules.kinds import Kind
from gpu_dash.logs.rules.rule import Weight
from gpu_dash.model.events import Finding
from gpu_dash.model.log import Severity

WINDOW_S = 120.0
"""Findings further apart than this by the stamps in the log are not of one incident."""
WAITING_WINDOW_S = 1900.0
"""The same after a process was seen waiting: NCCL gives up after 10 minutes, or 30."""
NEARBY_LINES = 40
"""A line this near may name the card that another one left out."""


@dataclass(slots=True, eq=False)
class OpenFinding:
    """A finding while more may become known about it."""

    kind: Kind
    severity: Severity
    weight: Weight
    seniority: int
    """Whose word counts more: a worker's 2, the engine's 1, the front end's 0."""
    line: int
    message: str
    at: float
    moment: float | None
    """Seconds by the stamp in the line, of a clock that starts anywhere."""
    subject: str = ""
    speaks_for_itself: bool = True
    """It was said by the process that it is about, or by one with a name."""
    first_check: str = ""
    root: bool = True
    count: int = 1
    said: Finding | None = field(default=None)
    """As it was last handed out."""
    is_over: bool = False
    """It is not repeated any more: its count is final."""

    def finding(self) -> Finding:
        """As it is known now."""
        return Finding(
            at=self.at,
            kind=self.kind.name,
            severity=self.severity,
            source="log",
            subject=self.subject,
            message=self.message,
            first_check=self.first_check,
            line=self.line,
            root=self.root,
            count=self.count,
            checks=self.kind.checks,
        )

    @property
    def rank(self) -> tuple[int, int, int]:
        """What orders causes: weight, then whose word it is, then the earlier line."""
        return (self.weight, self.seniority, -self.line)


class Incident:
    """Findings that belong together, and the one that is the cause."""

    def __init__(self) -> None:
        self._root: OpenFinding | None = None
        self._last_moment: float | None = None

    @property
    def root(self) -> OpenFinding | None:
        """The cause as far as it is known."""
        return self._root

    def admit(self, new: OpenFinding) -> None:
        """Decide what a new finding is, and what it makes of the cause so far."""
        if new.weight is Weight.CONDITION:
            return
        if self._is_over(new):
            self._root = None
        if new.moment is not None:
            self._last_moment = new.moment
        root = self._root
        if new.weight is Weight.CONSEQUENCE:
            new.root = False
        elif root is None:
            self._root = new
        elif new.rank > root.rank:
            root.root = False
            self._root = new
        elif root.seniority == 0 and new.seniority == 0:
            pass  # errors of single requests have nothing to do with each other
        else:
            new.root = False
        if root is not None:
            _learn_subject(root, new)
            _learn_reason(root, new)

    def close(self) -> None:
        """What comes from here on has nothing to do with it."""
        self._root = None
        self._last_moment = None

    def _is_over(self, new: OpenFinding) -> bool:
        if self._root is None or new.moment is None or self._last_moment is None:
            return False
        waiting = self._root.weight is Weight.WAITING
        window = WAITING_WINDOW_S if waiting else WINDOW_S
        return abs(new.moment - self._last_moment) > window


def _learn_subject(root: OpenFinding, new: OpenFinding) -> None:
    """A cause without a card or rank learns it from what followed: the same failure said again
    with its card, or, if nobody with a name had said it, the worker that died of it."""
    if root.subject or not new.subject or abs(new.line - root.line) > NEARBY_LINES:
        return
    if new.kind is root.kind or (new.kind.name == "worker_died" and not root.speaks_for_itself):
        root.subject = new.subject


def _learn_reason(root: OpenFinding, new: OpenFinding) -> None:
    """A worker that the kernel killed did not die for reasons unknown."""
    if root.kind.name == "host_oom" and new.kind.name == "worker_died":
        new.kind = root.kind
