"""Lines in, marks and findings out.

The classifier remembers what earlier lines said: what the server was doing, which process has
which rank, what each process is in the middle of saying, and what was found so far. Feeding it
the lines one by one or all at once gives the same.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import lru_cache

import msgspec

from gpu_dash.logs.grammar import Form, Record, parse, place_of
from gpu_dash.logs.incident import WINDOW_S, Incident, OpenFinding
from gpu_dash.logs.rules import RULES
from gpu_dash.logs.rules.kinds import CALLER_KINDS, KINDS
from gpu_dash.logs.rules.rule import Voice, Weight, voice_of
from gpu_dash.logs.rules.ruleset import Match, RuleSet
from gpu_dash.logs.stage import Stage, stage_told_by
from gpu_dash.logs.stamps import moment
from gpu_dash.logs.subject import Ranks
from gpu_dash.logs.tracebacks import Tracebacks, Unknown
from gpu_dash.model.events import Finding
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.model.text import strip_controls

SHOWN_CHARACTERS = 4096
"""What the pane gets of a line."""
MOST_OPEN = 512
"""Findings that can still be repeated or learned about."""

_RULES = RuleSet(RULES)
_BUS_ID_NEARBY = 3
_KERNEL_BUS_ID = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_SMI_CARD = re.compile(r"GPU ([0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7])$")
_EXCEPTION_NAME = re.compile(r"[\w.]+")


class Classifier:
    """Marks lines and finds what is in them."""

    def __init__(self) -> None:
        self._stage = Stage.UNKNOWN
        self._ranks = Ranks()
        self._tracebacks = Tracebacks()
        self._incident = Incident()
        self._callers = {kind: Incident() for kind in CALLER_KINDS}
        self._open: dict[Hashable, OpenFinding] = {}
        self._changed: dict[int, OpenFinding] = {}
        """By line: findings of which something is not yet handed out."""
        self._card = ("", 0)
        """The card that was named last without a finding, and in which line."""
        self._at = 0.0

    def feed(
        self, texts: Sequence[str], first_number: int, at: float
    ) -> tuple[list[LogLine], list[Finding]]:
        """Classify lines in their order.

        Args:
            texts: whole lines without their line feeds, as
                :class:`~gpu_dash.logs.lines.LineAssembler` gives them.
            first_number: the number of the first one; the others follow it.
            at: monotonic moment at which they were read.

        Returns:
            The lines as they are shown, and the findings that are new or of which more is known.
        """
        self._at = at
        lines = []
        for number, text in enumerate(texts, first_number):
            lines.append(
                self._line(number, text) if text.isprintable() else self._states(number, text)
            )
            due = self._tracebacks.next_due
            if due is not None and due <= number:
                self._report_unknown(self._tracebacks.expire(number))
        return lines, self._news(every_count=False)

    def settle(self, at: float) -> list[Finding]:
        """Nothing more comes for now: judge what was waiting for more, and give every count."""
        self._at = at
        self._report_unknown(self._tracebacks.settle())
        return self._news(every_count=True)

    def shown(self, number: int, text: str) -> LogLine:
        """A line that is not finished, as the pane shows it."""
        states = [strip_controls(state) for state in text.split("\r")]
        return LogLine(number, _cut(_newest(states)))

    # -- one line --------------------------------------------------------------------------------

    def _states(self, number: int, text: str) -> LogLine:
        """A line with control characters: perhaps several states of a progress bar, of which the
        newest is shown, or the first one in which something is found."""
        line = LogLine(number, "")
        for state in map(strip_controls, text.split("\r")):
            if state:
                line = self._line(number, state)
                if line.kind:
                    break
        return line

    def _line(self, number: int, text: str) -> LogLine:
        record, voice = _read(text)
        found = None
        if voice is Voice.RAW or (voice is Voice.FAILURE and record.form is not Form.TORCH):
            found = self._failure(voice, record, number, text)
        elif voice is Voice.SILENT:
            if record.form is Form.PROGRESS:
                self._note_stage(record.message)
        else:
            if voice is Voice.ACCESS:
                self._enter(Stage.SERVING)
            elif voice is Voice.NOTE:
                self._note_stage(record.message)
                self._ranks.learn(record)
            match = _RULES.match(voice, record.message, (), self._stage)
            if match is not None and not match.rule.is_ignored:
                found = self._report(match, record, number, text)
            elif voice is Voice.KERNEL:
                self._note_card(record.message, number)
        shown = _cut(text)
        if found is None:
            return LogLine(number, shown)
        is_cause = found.root and found.line == number
        return LogLine(number, shown, found.kind.name, found.severity, is_cause)

    def _failure(self, voice: Voice, record: Record, number: int, text: str) -> OpenFinding | None:
        """A line of a process that reports a failure, or raw text."""
        if "\n" not in record.message:
            match = self._statement(voice, record, number, text)
        else:  # a JSON record holds its whole traceback
            matches = [
                self._statement(voice, _with_message(record, part), number, part)
                for part in record.message.split("\n")
            ]
            match = max(
                (match for match in matches if match), key=lambda m: m.rule.weight, default=None
            )
        if match is None:
            return None
        return self._report(match, record, number, text)

    def _statement(self, voice: Voice, record: Record, number: int, text: str) -> Match | None:
        writer, statement = self._tracebacks.statement(record)
        if statement is None:
            return None
        match = None
        # A heading that quotes the exception; the exception itself comes below.
        if not statement.endswith("Traceback (most recent call last):"):
            match = _RULES.match(voice, statement, writer.frames, self._stage)
        if match is not None:
            self._tracebacks.known(writer, record, number)
            return None if match.rule.is_ignored else match
        self._tracebacks.not_known(writer, record, number, text, statement)
        if voice is Voice.RAW:
            self._note_card(statement, number)
        return None

    # -- what earlier lines said -----------------------------------------------------------------

    def _note_stage(self, message: str) -> None:
        told = stage_told_by(message)
        if told is not None:
            self._enter(told)

    def _enter(self, stage: Stage) -> None:
        if stage is self._stage:
            return
        if stage is Stage.STARTING:
            self._report_unknown(self._tracebacks.forget())
            self._incident.close()
            for incident in self._callers.values():
                incident.close()
            self._open.clear()
        elif self._stage is Stage.STOPPING and stage is Stage.SERVING:
            return  # the last replies of a server that was asked to stop
        self._stage = stage

    def _note_card(self, message: str, number: int) -> None:
        """A card that is named in one line and meant in the next ones."""
        if message.startswith("NVRM: "):
            found = _KERNEL_BUS_ID.search(message)
            if found is not None:
                self._card = (f"pci:{found[0].lower()}", number + _BUS_ID_NEARBY)
        elif message.startswith("GPU "):
            found = _SMI_CARD.match(message)
            if found is not None:
                self._card = (f"pci:{found[1].lower()}", number + 200)

    # -- findings --------------------------------------------------------------------------------

    def _report(self, match: Match, record: Record, number: int, text: str) -> OpenFinding | None:
        rule, kind = match.rule, match.kind
        if self._is_expected(rule.weight):
            return None
        subject = self._ranks.subject(record, match.values)
        if not subject and number <= self._card[1] and record.form in (Form.KERNEL, Form.RAW):
            subject = self._card[0]
        new = OpenFinding(
            kind=kind,
            severity=match.severity,
            weight=rule.weight,
            seniority=2 if subject else _seniority(record),
            line=number,
            message=_cut(text),
            at=self._at,
            moment=moment(record.stamp) if record.stamp else None,
            subject=subject,
            speaks_for_itself=bool(record.process or subject),
            first_check=match.first_check,
        )
        if rule.harmless_in and (self._stage in rule.harmless_in or self._stage is Stage.UNKNOWN):
            new.severity = Severity.INFO
            if self._stage is not Stage.UNKNOWN:
                new.first_check = f"nothing yet: the server is {self._stage.value}"
        found = self._fold((id(rule), _fold_subject(subject)), new)
        if found is not new and rule.harmless_in and self._stage not in rule.harmless_in:
            found.severity, found.first_check = match.severity, match.first_check
        return found

    def _report_unknown(self, unknowns: list[Unknown]) -> None:
        """Errors that no rule knows; never silence."""
        for unknown in unknowns:
            record = unknown.record
            kind = KINDS["python_error"]
            stopping = self._is_expected(Weight.UNEXPLAINED)
            name = _EXCEPTION_NAME.match(record.message.lstrip(" |+-"))
            subject = self._ranks.subject(record, {})
            self._fold(
                ("python_error", subject, name[0] if name else ""),
                OpenFinding(
                    kind=kind,
                    severity=Severity.WARNING if stopping else kind.severity,
                    weight=Weight.CONDITION if stopping else Weight.UNEXPLAINED,
                    seniority=_seniority(record),
                    line=unknown.number,
                    message=_cut(unknown.text),
                    at=self._at,
                    moment=moment(record.stamp) if record.stamp else None,
                    subject=subject,
                    speaks_for_itself=bool(record.process),
                    first_check=kind.first_check,
                ),
            )

    def _is_expected(self, weight: Weight) -> bool:
        """Whether it is how a server ends that somebody asked to stop."""
        cause = self._incident.root
        return (
            self._stage is Stage.STOPPING
            and (cause is None or cause.weight is Weight.WAITING)
            and weight in (Weight.CONSEQUENCE, Weight.UNEXPLAINED)
        )

    def _fold(self, key: Hashable, new: OpenFinding) -> OpenFinding:
        """The finding that this one repeats, or the new one."""
        known = self._open.get(key)
        if known is not None and not _is_apart(known, new):
            known.count += 1
            known.moment = new.moment or known.moment
            self._changed[known.line] = known
            return known
        if len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        self._open[key] = new
        incident = self._callers.get(new.kind.name, self._incident)
        before = incident.root
        incident.admit(new)
        if before is not None:
            self._changed[before.line] = before
        self._changed[new.line] = new
        return new

    def _news(self, *, every_count: bool) -> list[Finding]:
        """What is not handed out yet. A count alone is handed out when it has doubled."""
        news = []
        waiting: dict[int, OpenFinding] = {}
        for line, open_finding in self._changed.items():
            finding, said = open_finding.finding(), open_finding.said
            if said is None or every_count or finding.count >= 2 * said.count:
                due = finding != said
            else:
                due = _but_count(finding) != _but_count(said)
                if not due and finding != said:
                    waiting[line] = open_finding
            if due:
                open_finding.said = finding
                news.append(finding)
        self._changed = waiting
        return news


@lru_cache(maxsize=1024)
def _read(text: str) -> tuple[Record, Voice]:
    """A line taken apart. A storm says the same few lines thousands of times in a second."""
    record = parse(text)
    return record, voice_of(record)


def _newest(states: Sequence[str]) -> str:
    return next((state for state in reversed(states) if state), "")


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"


def _with_message(record: Record, message: str) -> Record:
    return msgspec.structs.replace(record, message=message)


def _seniority(record: Record) -> int:
    """Whose word counts more: that of a worker, of NCCL and of the kernel 2, of the engine and
    of whoever has no name 1, of the front end 0."""
    place = place_of(record.process)
    if place.is_worker or record.form in (Form.KERNEL, Form.NCCL):
        return 2
    return 0 if place.is_front_end else 1


def _fold_subject(subject: str) -> str:
    """A card is the same one with and without its function number."""
    return subject.partition(".")[0] if subject.startswith("pci:") else subject


def _is_apart(known: OpenFinding, new: OpenFinding) -> bool:
    """Whether the same words mean another event: hours lie between them."""
    if known.weight in (Weight.CONDITION, Weight.WAITING):
        return False
    if known.moment is None or new.moment is None:
        return False
    return abs(new.moment - known.moment) > WINDOW_S


def _but_count(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, count=1)
