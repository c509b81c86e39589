"""What makes two runs unlike, in words.

The cards, their power limit and the profile are what a comparison is about and stand in its
legend. Everything here changes the figures without being a property of the cards: other requests,
another server, another way of measuring.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from gpu_dash.analysis.run import Run
from gpu_dash.model.load import LoadPlan

ANSWER_RATIO = 1.05
"""Answers whose mean length differs by more than this are not the same work."""
NOT_KNOWN = "not known"
_OF_THE_HOST = frozenset({"--host", "--port"})
"""Arguments of the server that say only where it listens."""


class Part(StrEnum):
    """What is not the same, as a sentence begins."""

    REQUESTS = "not the same requests"
    SERVER = "not the same server"
    MEASUREMENT = "not measured alike"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not the same in all runs."""

    part: Part
    aspect: str
    values: tuple[str, ...]
    """In words, in the order of the runs."""

    @property
    def sentence(self) -> str:
        """``not the same requests: output tokens 256 / 128``."""
        return f"{self.part}: {self.aspect} {' / '.join(self.values)}"


_Found = Difference | None


def differences(runs: Sequence[Run]) -> tuple[Difference, ...]:
    """All that is not the same in all runs, the weightiest first."""
    found = [_by_run(*aspect, runs) for aspect in _OF_RUNS]
    plans = [run.plan for run in runs]
    known = [plan for plan in plans if plan is not None]
    if len(known) == len(plans):
        found[1:1] = [_by_plan(*aspect, known) for aspect in _OF_PLANS]
        found.append(_answers(runs))
    elif known:
        values = tuple(NOT_KNOWN if plan is None else "recorded" for plan in plans)
        found.append(Difference(part=Part.REQUESTS, aspect="what was asked:", values=values))
    found += _arguments(runs)
    return tuple(difference for difference in found if difference is not None)


def _by_run(part: Part, aspect: str, of: Callable[[Run], str], runs: Sequence[Run]) -> _Found:
    return _difference(part, aspect, [of(run) or NOT_KNOWN for run in runs])


def _by_plan(
    part: Part, aspect: str, of: Callable[[LoadPlan], str], plans: Sequence[LoadPlan]
) -> _Found:
    return _difference(part, aspect, [of(plan) for plan in plans])


def _difference(part: Part, aspect: str, values: Sequence[str]) -> _Found:
    if len(set(values)) < 2:
        return None
    return Difference(part=part, aspect=aspect, values=tuple(values))


# -- one aspect each ---------------------------------------------------------------------------


def _prompt(plan: LoadPlan) -> str:
    if plan.dataset is not None:
        return f"dataset {os.path.basename(plan.dataset)}"
    if plan.prompt is not None:
        digest = hashlib.sha256(plan.prompt.encode(errors="replace")).hexdigest()[:6]
        return f"a text of {len(plan.prompt)} characters (sha256 {digest})"
    if plan.prompt_tokens is None:
        return "synthetic, of the usual length"
    return f"{plan.prompt_tokens} synthetic tokens"


def _step_length(plan: LoadPlan) -> str:
    return f"{plan.step_s:g} s" if plan.requests is None else f"{plan.requests} requests"


def _loop(plan: LoadPlan) -> str:
    return f"open, {plan.arrival}" if plan.rates else "closed"


def _fields(plan: LoadPlan) -> str:
    return msgspec.json.encode(plan.extra_body, order="sorted").decode()


def _tokens_from(run: Run) -> str:
    return {True: "chunks", False: "usage", None: ""}[run.tokens_are_chunks]


_OF_RUNS: tuple[tuple[Part, str, Callable[[Run], str]], ...] = (
    (Part.SERVER, "model", lambda run: run.model),
    (Part.SERVER, "vLLM", lambda run: run.vllm_version),
    (Part.MEASUREMENT, "tokens counted from", _tokens_from),
    (Part.MEASUREMENT, "gpu-dash", lambda run: run.gpu_dash_version),
)
_OF_PLANS: tuple[tuple[Part, str, Callable[[LoadPlan], str]], ...] = (
    (Part.REQUESTS, "prompt", _prompt),
    (Part.REQUESTS, "shared prefix", lambda plan: f"{plan.shared_prefix:g}"),
    (Part.REQUESTS, "output tokens", lambda plan: f"{plan.output_tokens}"),
    (Part.REQUESTS, "ignore_eos", lambda plan: "yes" if plan.ignore_eos else "no"),
    (Part.REQUESTS, "API", lambda plan: plan.endpoint.value),
    (Part.REQUESTS, "seed", lambda plan: f"{plan.seed}" if plan.seed else "new each time"),
    (Part.REQUESTS, "further fields", _fields),
    (Part.MEASUREMENT, "loop", _loop),
    (Part.MEASUREMENT, "warm-up", lambda plan: f"{plan.warmup_s:g} s"),
    (Part.MEASUREMENT, "step", _step_length),
    (Part.MEASUREMENT, "timeout", lambda plan: f"{plan.timeout_s:g} s"),
)


def _answers(runs: Sequence[Run]) -> _Found:
    """Lengths of the answers, where the same were asked for and others came."""
    asked = {run.plan.output_tokens for run in runs if run.plan is not None}
    means = [_tokens_per_answer(run) for run in runs]
    known = [mean for mean in means if mean]
    if len(asked) > 1 or len(known) < len(means) or max(known) <= min(known) * ANSWER_RATIO:
        return None
    values = tuple(f"{mean:.0f}" for mean in known)
    return Difference(part=Part.REQUESTS, aspect="tokens per answer that came:", values=values)


def _tokens_per_answer(run: Run) -> float | None:
    """Mean over the steps without a failure, whose tokens are all of whole answers."""
    whole = [step for step in run.steps if step.requests_ok and not step.requests_failed]
    answers = sum(step.requests_ok for step in whole)
    return sum(step.output_tokens for step in whole) / answers if answers else None


def _arguments(runs: Sequence[Run]) -> list[_Found]:
    """Flags of the servers that gpu-dash started, where it started all of them."""
    if not all(run.arguments for run in runs):
        return []
    flags = [_flags(run.arguments) for run in runs]
    names = dict.fromkeys(name for of_run in flags for name in of_run)
    return [
        _difference(Part.SERVER, name, [of_run.get(name, "left out") for of_run in flags])
        for name in names
        if name not in _OF_THE_HOST
    ]


def _flags(arguments: Sequence[str]) -> dict[str, str]:
    """Flags with their values: ``--flag value``, ``--flag=value``, and ``set`` for a bare one."""
    values: dict[str, list[str]] = {}
    name = ""
    for word in arguments:
        if word.startswith("--"):
            name, is_joined, value = word.partition("=")
            values[name] = [value] if is_joined else []
        elif name:
            values[name].append(word)
    return {name: " ".join(words) or "set" for name, words in values.items()}
