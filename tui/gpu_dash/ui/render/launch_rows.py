"""The launch screen in rows: the profiles, and what is known of the chosen one."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from gpu_dash.analysis.memory.words import plan_facts, plan_headline
from gpu_dash.doctor.check import Check, CheckStatus
from gpu_dash.doctor.gfx import override_words
from gpu_dash.doctor.profile import Prospect
from gpu_dash.model.profile import Profile
from gpu_dash.server.command_line import command_line
from gpu_dash.ui.launch_desk import Choice
from gpu_dash.ui.render.format import count
from gpu_dash.ui.render.row import Role, Row

DOCTOR = "DOCTOR"
LABEL_WIDTH = 10
_LONGEST_NAME = 40
_DESCRIPTION = 12
"""Cells from which a description says something."""
_SIGNS = {
    CheckStatus.OK: ("✓", Role.GOOD),
    CheckStatus.WARN: ("!", Role.WARN),
    CheckStatus.FAIL: ("✗", Role.ALARM),
}


@dataclass(frozen=True)
class Looked:
    """What is known of the chosen profile so far.

    Attributes:
        prospect: ``None`` while it is being looked at.
        problem: why it cannot be read.
        checks: what the doctor has said.
        examining: the doctor goes on.
        accepted: the corrections go into the launch.
    """

    prospect: Prospect | None = None
    problem: str = ""
    checks: tuple[Check, ...] = ()
    examining: bool = False
    accepted: bool = False


def choice_rows(choices: Sequence[Choice], chosen: int, width: int, height: int) -> list[Row]:
    """The list, scrolled so that the chosen one is in it; with descriptions where they fit."""
    top = max(0, min(chosen - height // 2, len(choices) - height))
    name_width = list_width(choices)
    rows = []
    for at, one in enumerate(choices[top : top + height], start=top):
        is_chosen = at == chosen
        row = Row([("▸" if is_chosen else " ", Role.ACCENT), ("*" if one.own else " ", Role.DIM)])
        row.add(one.name, Role.STRONG if is_chosen else Role.PLAIN)
        if one.problem:
            row.add(" ✗", Role.ALARM)
        if width > name_width + _DESCRIPTION:
            row.pad(name_width + 2).add(one.problem or one.description, Role.DIM)
        rows.append(row.fit(width))
    return rows


def list_width(choices: Sequence[Choice]) -> int:
    """Cells of the list without descriptions."""
    return min(_LONGEST_NAME, max((len(one.name) for one in choices), default=0)) + 5


def detail_rows(looked: Looked, width: int) -> list[Row]:
    """Everything about the chosen profile, from what decides to what explains."""
    if looked.problem:
        return _block("PROBLEM", [(looked.problem, Role.ALARM)], width)
    prospect = looked.prospect
    if prospect is None:
        return _block("", [("looking at it …", Role.DIM)], width)
    description = prospect.profile.description or "no description"
    rows = _block("", [(description, Role.ACCENT)], width)
    if prospect.refused:
        rows += _block("REFUSED", [(f"✗ {prospect.refused}", Role.ALARM)], width)
    rows += _flag_rows(prospect, looked, width)
    rows += _memory_rows(prospect, width)
    rows += _start_rows(prospect, width)
    rows += _doctor_rows(looked, width)
    return rows


def first_row_of(rows: Sequence[Row], label: str) -> int:
    """Where a block begins; 0 if there is none."""
    return next((at for at, row in enumerate(rows) if row.text.startswith(label)), 0)


def _start_rows(prospect: Prospect, width: int) -> list[Row]:
    profile = prospect.profile
    what = "WATCHES" if profile.target is not None else "STARTS"
    rows = _block(what, [(prospect.starts, Role.STRONG)], width)
    target = profile.target
    environment = target.host_env if target is not None else profile.server.env
    if environment:
        pairs = "  ".join(f"{name}={value}" for name, value in environment.items())
        rows += _block("HOST ENV" if target is not None else "ENV", [(pairs, Role.PLAIN)], width)
        if gfx := override_words(environment):
            rows += _block("", [(f"! {gfx}", Role.WARN)], width)
    if target is not None and target.extra_body:
        pairs = "  ".join(f"{name} {value}" for name, value in target.extra_body.items())
        rows += _block("REQUESTS", [(pairs, Role.PLAIN)], width)
    return [*rows, *_block("LOAD", [(_load(profile), Role.PLAIN)], width)]


def _load(profile: Profile) -> str:
    words = profile.load.words
    band = profile.expected
    if band is None:
        return words
    low, high = band.output_tokens_per_s
    ttft = f", TTFT {band.ttft}" if band.ttft else ""
    return f"{words}; expected {low:,.0f}–{high:,.0f} tok/s at {band.concurrency}{ttft}"


def _flag_rows(prospect: Prospect, looked: Looked, width: int) -> list[Row]:
    right = prospect.corrected
    if right is None:
        return []
    if not right.checked.corrections:
        lines = [(f"✓ vLLM {prospect.release} knows every flag and variable", Role.GOOD)]
    else:
        lines = [(f"✗ {one.detail}", Role.ALARM) for one in right.checked.corrections]
        if right.is_changed:
            offer = "taken for this launch" if looked.accepted else "a takes it, w keeps it"
            lines.append((f"corrected ({offer}):", Role.GOOD if looked.accepted else Role.STRONG))
            lines.append((f"  {command_line(right.profile.server)}", Role.PLAIN))
        if right.left:
            where = prospect.profile.server.compose_file or "the profile"
            what = "the rest has" if right.is_changed else "that has"
            lines.append((f"{what} to be put right in {where}", Role.WARN))
    lines += [(f"! {warning}", Role.WARN) for warning in right.checked.warnings]
    return _block("FLAGS", lines, width)


def _memory_rows(prospect: Prospect, width: int) -> list[Row]:
    planned = prospect.planned
    if planned is None:
        if not prospect.no_plan:
            return []
        rows = _block("MEMORY", [(f"no plan: {prospect.no_plan}", Role.DIM)], width)
        return [*rows, *_table_rows(prospect.other_cards, width)]
    plan, request = planned.plan, planned.request
    head = plan_headline(planned.shape, request)
    lines = [(f"✓ fits: {head}", Role.GOOD) if plan.fits else (f"✗ {head}", Role.ALARM)]
    lines += [(f"✗ {reason}", Role.ALARM) for reason in plan.reasons]
    lines += [(f"{label.ljust(17)}{text}", Role.PLAIN) for label, text in plan_facts(request, plan)]
    held = plan.cache.tokens * request.split.data
    if held:
        asked = f"the ramp's highest step holds {count(planned.ramp_tokens)} tokens at once"
        role = Role.PLAIN if planned.ramp_tokens <= held else Role.WARN
        more = "" if planned.ramp_tokens <= held else ": some requests will wait or be preempted"
        lines.append((asked + more, role))
    return _block("MEMORY", lines, width)


def _table_rows(table: str, width: int) -> list[Row]:
    """Lines of a table, cut and not wrapped."""
    rows = []
    for line in table.splitlines():
        role = Role.ALARM if " NO " in line else Role.PLAIN
        rows.append(Row().pad(LABEL_WIDTH).add(line, role).fit(width))
    return rows


def _doctor_rows(looked: Looked, width: int) -> list[Row]:
    if not looked.checks and not looked.examining:
        return _block(
            DOCTOR, [("d goes through host and endpoint, check by check", Role.DIM)], width
        )
    rows: list[Row] = []
    for check in looked.checks:
        sign, role = _SIGNS[check.status]
        label = DOCTOR if not rows else ""
        words = f"{sign} {check.check.ljust(12)} {check.detail}"
        shown = Role.PLAIN if check.status is CheckStatus.OK else role
        rows += _block(label, [(words, shown)], width, hanging=15)
        if check.action is not None:
            rows += _block("", [(f"{' ' * 13}→ {check.action}", Role.PLAIN)], width, hanging=15)
    if looked.examining:
        rows += _block("" if rows else DOCTOR, [("◐ checking …", Role.ACCENT)], width)
    else:
        counts = dict.fromkeys(CheckStatus, 0)
        for check in looked.checks:
            counts[check.status] += 1
        words = ", ".join(f"{number} {status}" for status, number in counts.items())
        rows += _block("", [(f"done: {words}", Role.STRONG)], width)
    return rows


def _block(
    label: str, lines: Sequence[tuple[str, Role]], width: int, *, hanging: int = 2
) -> list[Row]:
    """Lines under a label at their left, wrapped to the width."""
    room = max(20, width - LABEL_WIDTH)
    rows: list[Row] = []
    for text, role in lines:
        indent = len(text) - len(text.lstrip(" "))
        parts = textwrap.wrap(
            text.lstrip(" "), room, drop_whitespace=True, initial_indent=" " * indent,
            subsequent_indent=" " * max(indent, hanging), break_on_hyphens=False,
        )  # fmt: skip
        for part in parts or [""]:
            head = "" if rows else label
            rows.append(Row([(head, Role.DIM)]).pad(LABEL_WIDTH).add(part, role).fit(width))
    return rows
