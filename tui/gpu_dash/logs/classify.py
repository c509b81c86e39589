"""Lines in, marks and findings out.

The classifier remembers what earlier lines said: what the server was doing, which process has
which rank, what each process is in the middle of saying, and what was found so far. Feeding it
the lines one by one or all at once gives the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from gpu_dash.logs.findings import Findings
from gpu_dash.logs.grammar import Form, Record, parse, place_of
from gpu_dash.logs.incident import OpenFinding
from gpu_dash.logs.rules import RULES
from gpu_dash.logs.rules.kinds import KINDS
from gpu_dash.logs.rules.rule import Weight
from gpu_dash.logs.rules.ruleset import Match, RuleSet
from gpu_dash.logs.rules.voice import Voice, voice_of
from gpu_dash.logs.stage import Stage, stage_told_by
from gpu_dash.logs.stamps import moment
from gpu_dash.logs.subject import Ranks
from gpu_dash.logs.tracebacks import Tracebacks, Unknown
from gpu_dash.model.events import Finding
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.model.text import strip_controls

SHOWN_CHARACTERS = 4096
"""What the pane gets of a line."""

_RULES = RuleSet(RULES)
_BUS_ID_NEARBY = 3
_TABLE_LINES = 200
"""Of one card in ``nvidia-smi -q``."""
_KERNEL_BUS_ID = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_SMI_CARD = re.compile(r"GPU ([0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7])$")


class Classifier:
    """Marks lines and finds what is in them."""

    def __init__(self) -> None:
        self._stage = Stage.UNKNOWN
        self._ranks = Ranks()
        self._tracebacks = Tracebacks()
        self._findings = Findings()
        self._card = ("", 0)
        """The card that was named last without a finding, and up to which line it is meant."""
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
        return lines, self._findings.news(every_count=False)

    def settle(self, at: float) -> list[Finding]:
        """Nothing more comes for now: judge what was waiting for more, and give every count."""
        self._at = at
        self._report_unknown(self._tracebacks.settle())
        return self._findings.news(every_count=True)

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
            if match is not None:
                if not match.rule.is_ignored:
                    found = self._report(match, record, number, text)
            elif voice is Voice.KERNEL:
                self._note_card(record.message, number)
            elif voice is Voice.FAILURE and record.message.strip():
                self._report_unknown(
                    [Unknown(number, text, record, is_exception=False, due=number)]
                )
        shown = _cut(text)
        if found is None:
            return LogLine(number, shown)
        is_cause = found.root and found.line == number
        return LogLine(number, shown, found.kind.name, found.severity, is_cause)

    def _failure(self, voice: Voice, record: Record, number: int, text: str) -> OpenFinding | None:
        """A line of a process that reports a failure, or raw text."""
        if "\n" not in record.message:
            return self._statement(voice, record, number, text)
        # A JSON record holds its whole traceback; a line is one finding at most.
        for part in record.message.split("\n"):
            found = self._statement(voice, _with_message(record, part), number, text)
            if found is not None:
                return found
        return None

    def _statement(
        self, voice: Voice, record: Record, number: int, text: str
    ) -> OpenFinding | None:
        writer, statement = self._tracebacks.statement(record)
        if statement is None:
            return None
        match = _RULES.match(voice, statement, writer.frames, self._stage)
        if match is None:
            self._tracebacks.not_known(writer, record, number, text, statement)
            if voice is Voice.RAW:
                self._note_card(statement, number)
            return None
        is_heading, is_exception = writer.is_new, writer.in_traceback
        self._tracebacks.known(writer, record, number)
        if match.rule.is_ignored:
            writer.is_chained = is_heading  # the traceback below it tells nothing else
            return None
        if is_exception and writer.heading is not None and _says_more(match, writer.heading):
            writer.heading.first_check = match.first_check
            self._findings.correct(writer.heading, match.kind)
            return writer.heading
        found = self._report(match, record, number, text)
        if is_heading:
            writer.heading = found
        return found

    # -- what earlier lines said -----------------------------------------------------------------

    def _note_stage(self, message: str) -> None:
        told = stage_told_by(message)
        if told is not None:
            self._enter(told)

    def _enter(self, stage: Stage) -> None:
        if stage is self._stage:
            return
        if stage is Stage.STARTING and self._stage is not Stage.UNKNOWN:
            self._report_unknown(self._tracebacks.forget())
            self._findings.close()
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
                self._card = (f"pci:{found[1].lower()}", number + _TABLE_LINES)

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
        found = self._findings.add((id(rule), _card_of(subject)), new)
        if found is not new and rule.harmless_in and self._stage not in rule.harmless_in:
            found.severity, found.first_check = match.severity, match.first_check
        return found

    def _report_unknown(self, unknowns: list[Unknown]) -> None:
        """Errors that no rule knows; never silence."""
        for unknown in unknowns:
            record = unknown.record
            kind = KINDS["python_error"]
            stopping = self._is_expected(Weight.UNEXPLAINED)
            message = record.message.lstrip(" |+-")
            said = message.partition(":")[0] if unknown.is_exception else message
            subject = self._ranks.subject(record, {})
            self._findings.add(
                (kind.name, subject, said),
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
        cause = self._findings.cause
        return (
            self._stage is Stage.STOPPING
            and (cause is None or cause.weight is Weight.WAITING)
            and weight in (Weight.CONSEQUENCE, Weight.UNEXPLAINED)
        )


@lru_cache(maxsize=256)
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


def _says_more(match: Match, heading: OpenFinding) -> bool:
    return match.kind is not heading.kind and match.rule.weight is heading.weight


def _seniority(record: Record) -> int:
    """Whose word counts more: that of a worker, of NCCL and of the kernel 2, of the engine and
    of whoever has no name 1, of the front end 0."""
    place = place_of(record.process)
    if place.is_worker or record.form in (Form.KERNEL, Form.NCCL):
        return 2
    return 0 if place.is_front_end else 1


def _card_of(subject: str) -> str:
    """A card is the same one with and without its function number."""
    return subject.partition(".")[0] if subject.startswith("pci:") else subject
