"""What a rule is: how a failure reads in a log, and how much it explains.

A rule is data. It is read by people first, so most of one is phrases that stand literally in the
line, and the example lines under it are its tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from gpu_dash.logs.rules.voice import Voice
from gpu_dash.logs.stage import Stage
from gpu_dash.model.log import Severity


class Weight(IntEnum):
    """How much a finding explains. Of those that belong together the heaviest is the cause; of
    equal ones that of a worker before the engine's before the front end's, then the earliest."""

    CONDITION = 0
    """Stands for itself, neither cause nor consequence: a throttle, a preemption."""
    CONSEQUENCE = 1
    """Says itself that the cause is elsewhere. Never a cause."""
    WAITING = 2
    """Something waits; the cause as long as nothing else is known."""
    UNEXPLAINED = 3
    """Something broke and the line does not say why: a worker is gone, a peer does not answer."""
    EXPLAINED = 4
    """The line names what is wrong."""
    DETAIL = 5
    """The hardware, the kernel or the library itself says what is wrong."""


@dataclass(frozen=True)
class When:
    """What must be known besides the line; one of the three is enough."""

    text: str = ""
    """Expression in the line itself."""
    frames: str = ""
    """Expression in a line of the traceback that the line ends."""
    stages: frozenset[Stage] = frozenset()
    """What the server was doing."""


@dataclass(frozen=True)
class Case:
    """A variation of a rule's line with an advice, or a severity, of its own."""

    pattern: str
    first_check: str = ""
    severity: Severity | None = None


@dataclass(frozen=True)
class Rule:
    """How one failure reads. The first rule of the table that matches a line decides."""

    kind: str
    """Of :data:`~gpu_dash.logs.rules.kinds.KINDS`, which has severity and advice; empty for lines
    that look like a failure and are none."""
    phrases: tuple[str, ...]
    """One of these stands in the line, literally, and begins where a word begins."""
    pattern: str = ""
    """And this expression is found in it. Named groups ``gpu rank tp pci node pid`` name the
    subject; every named group can be used in ``first_check`` as ``{name}``."""
    unless: str = ""
    """And this expression is not."""
    values: str = ""
    """Expression that need not be found; for its named groups only."""
    when: When | None = None
    weight: Weight = Weight.EXPLAINED
    voices: frozenset[Voice] = frozenset({Voice.RAW, Voice.FAILURE})
    severity: Severity | None = None
    first_check: str = ""
    cases: tuple[Case, ...] = ()
    harmless_in: frozenset[Stage] = frozenset()
    """Stages in which it is information only. While the stage is not known it is so as well, until
    it is said again."""
    matches: tuple[str, ...] = ()
    """Whole lines as they stand in a log. Where it takes several, the last one matches."""
    rejects: tuple[str, ...] = ()
    """Whole lines of which no line may be reported with this kind."""

    _compiled: dict[str, re.Pattern[str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def compiled(self, expression: str) -> re.Pattern[str]:
        """One of the rule's expressions; compiled when it is needed, as most never are."""
        pattern = self._compiled.get(expression)
        if pattern is None:
            pattern = self._compiled[expression] = re.compile(expression)
        return pattern

    @cached_property
    def is_ignored(self) -> bool:
        """Whether its lines are to be passed over."""
        return not self.kind
