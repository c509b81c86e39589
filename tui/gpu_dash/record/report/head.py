"""What ran, and how it came out: the words at the head of the report."""

from __future__ import annotations

import shlex
from pathlib import Path

from gpu_dash.analysis.verdict import Verdict
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.load import LoadPlan
from gpu_dash.model.server import HandleKind
from gpu_dash.record.columns import FILES
from gpu_dash.record.folder import LOG_FILE, META_FILE
from gpu_dash.record.meta import SessionMeta
from gpu_dash.record.redact import hide_in_command
from gpu_dash.record.report.markup import Markup, element, joined
from gpu_dash.record.run import server_cards
from gpu_dash.record.words import NOT_OFFERED, clock, size

_ANSWERS = {
    True: ("yes", "passed"),
    False: ("NO", "failed-word"),
    None: ("not judged", "open"),
}
_VERDICTS = {True: "passed", False: "FAILED", None: "not judged"}
_STILL_OPEN = "not yet: it goes on, or its agent was killed"


def what_ran(meta: SessionMeta, duration_s: float) -> Markup:
    """Profile, command, versions, cards, load."""
    lines = [
        ("Session", meta.session),
        ("Label", meta.label),
        ("Profile", meta.profile),
        ("Model", meta.model),
        ("Cards", _cards(server_cards(meta)) or "none were read"),
        ("Load", "" if meta.plan is None else _load(meta.plan)),
        ("Server", _server(meta)),
        ("vLLM", meta.vllm_version),
        ("gpu-dash", meta.gpu_dash_version),
        ("Started", meta.anchor.time_utc(meta.anchor.monotonic)),
        ("Ended", meta.ended_utc or _STILL_OPEN),
        ("Lasted", clock(duration_s)),
        ("Exit code", "" if meta.exit_code is None else f"{meta.exit_code}"),
        ("Rows lost", f"{meta.rows_lost}, the disk did not take them" if meta.rows_lost else ""),
    ]
    parts = [joined((element("dt", name), element("dd", words))) for name, words in lines if words]
    if meta.argv:
        command = shlex.join(hide_in_command(meta.argv))
        parts.append(joined((element("dt", "Command"), element("dd", element("code", command)))))
    if meta.environment_names:
        names = " ".join(meta.environment_names)
        parts.append(
            joined((element("dt", "Variables set"), element("dd", element("code", names))))
        )
    return element("dl", *parts)


def verdict_words(verdict: Verdict | None) -> Markup:
    """The verdict with its conditions."""
    if verdict is None:
        reason = "There is none: the session goes on, ended early, or was without a ramp."
        return element("p", reason, class_="note")
    rows = [_answer("verdict", verdict.passed, _VERDICTS[verdict.passed], "")]
    rows += [
        _answer(condition.name, condition.passed, _ANSWERS[condition.passed][0], condition.detail)
        for condition in verdict.conditions
    ]
    return element("table", element("tbody", *rows), class_="keep")


def where_it_is(folder: Path) -> Markup:
    """The session's folder and the size of each of its files."""
    sizes = []
    for name in (META_FILE, *FILES, LOG_FILE):
        try:
            sizes.append(f"{name} {size((folder / name).stat().st_size)}")
        except OSError:
            continue
    return joined(
        (
            element("p", "The recording is in ", element("code", f"{folder.resolve()}"), "."),
            element("p", ", ".join(sizes), class_="note"),
        )
    )


def _answer(name: str, passed: bool | None, word: str, detail: str) -> Markup:
    return element(
        "tr",
        element("td", name.replace("_", " ")),
        element("td", element("span", word, class_=f"word {_ANSWERS[passed][1]}")),
        element("td", detail, class_="w"),
    )


def _cards(cards: tuple[GpuInfo, ...]) -> str:
    names = [card.name for card in cards]
    words = [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    indexes = ", ".join(f"{card.gpu}" for card in cards)
    return f"{', '.join(words)} (gpu {indexes})" if cards else ""


def _server(meta: SessionMeta) -> str:
    started = "started by somebody else" if meta.kind is HandleKind.EXTERNAL else meta.kind.value
    return f"{meta.base_url or NOT_OFFERED} ({started})"


def _load(plan: LoadPlan) -> str:
    if plan.dataset is not None:
        prompt = f"prompts of {Path(plan.dataset).name}"
    elif plan.prompt is not None:
        prompt = f"a prompt of {len(plan.prompt)} characters"
    else:
        tokens = "" if plan.prompt_tokens is None else f" of {plan.prompt_tokens} tokens"
        prompt = f"synthetic prompts{tokens}"
    steps = ", ".join(f"{load:g}" for load in plan.rates or plan.ramp)
    unit = "requests/s" if plan.rates else "concurrent"
    length = f"{plan.step_s:g} s" if plan.requests is None else f"{plan.requests} requests"
    return (
        f"{plan.endpoint}, {prompt}, {plan.output_tokens} output tokens asked; planned {steps} "
        f"{unit}, {length} each after {plan.warmup_s:g} s of warm-up"
    )
