"""A launch against a release of vLLM: what it does not know, and what to write instead."""

from __future__ import annotations

import difflib
import enum
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpu_dash.server.flags import advice, history
from gpu_dash.server.flags.history import Release, Span
from gpu_dash.server.flags.shapes import is_boolean, positive_form

LaunchFlags = Mapping[str, object]
"""Long names without dashes → ``True``, ``False``, a value, or a list of values."""

_PAIRS_AGAIN: Release = (0, 33)
"""From here the parser takes ``--disable-x`` for every boolean ``--enable-x``."""
_JSON_FLAGS = frozenset(
    [
        "additional-config",
        "attention-config",
        "compilation-config",
        "default-chat-template-kwargs",
        "eplb-config",
        "hf-overrides",
        "kv-events-config",
        "kv-transfer-config",
        "media-io-kwargs",
        "mm-processor-kwargs",
        "model-loader-extra-config",
        "override-generation-config",
        "pooler-config",
        "profiler-config",
        "speculative-config",
        "structured-outputs-config",
        "rope-scaling",
        "watchdog-config",
    ]
)
_CHOICES = {
    "dtype": ("auto", "half", "float16", "bfloat16", "float", "float32"),
    "scheduling-policy": ("fcfs", "priority"),
}


class Why(enum.StrEnum):
    """What is wrong with a name or a value."""

    GONE = "gone"
    NEVER_EXISTED = "never_existed"
    NO_EFFECT = "no_effect"
    BAD_FORM = "bad_form"


@dataclass(frozen=True)
class Correction:
    """One thing to write otherwise."""

    name: str
    """Flag without dashes, variable, or module, as it was written."""
    instead: str | None
    why: Why
    detail: str
    """A sentence for a person."""


@dataclass(frozen=True)
class CheckedLaunch:
    """What a release would say to a launch."""

    corrections: tuple[Correction, ...]
    warnings: tuple[str, ...]


def check_launch(
    flags: LaunchFlags,
    variables: Sequence[str],
    release: Release,
    *,
    program: str = "vllm serve",
    of_fork: bool = False,
    installed: frozenset[str] = frozenset(),
) -> CheckedLaunch:
    """Compare flags and variables with what a release knows.

    Args:
        flags: of the command line.
        variables: names of the environment that the launch sets.
        release: of vLLM.
        program: as :attr:`PastedLaunch.program`.
        installed: flags that the installed server takes beside those of the table.
        of_fork: the launch is for a hardware fork: names unknown to vLLM may be that fork's own.
    """
    corrections: list[Correction] = []
    warnings: list[str] = []
    if program in advice.PROGRAM_INSTEAD:
        instead = advice.PROGRAM_INSTEAD[program]
        corrections.append(
            Correction(program, instead, Why.GONE, f"{program} is gone; use {instead}")
        )
    for name, value in flags.items():
        if _is_of_fork(name, of_fork):
            warnings.append(f"--{name} is not vLLM's own: it belongs to a fork or a plug-in")
            continue
        corrections += _check_flag(name, value, release, installed)
    for name in variables:
        if not name.startswith("VLLM_"):
            continue
        span = history.variable_span(name)
        if (
            name in advice.FORK_VARIABLES
            or name.startswith(advice.FORK_PREFIXES)
            or (span is None and of_fork)
        ):
            warnings.append(f"{name} is not vLLM's own: it belongs to a fork or a plug-in")
        else:
            corrections += _check_name(
                name, span, advice.VARIABLE_INSTEAD, history.variables_of(release), release
            )
    return CheckedLaunch(tuple(corrections), tuple(warnings))


def full_name(name: str, release: Release) -> str:
    """An abbreviated flag written out, where it is the beginning of just one of a release."""
    head = name.partition(".")[0]
    known = history.flags_of(release)
    if head in known or history.flag_span(head) is not None:
        return name
    candidates = [flag for flag in known if flag.startswith(head)]
    if not candidates:
        candidates = [
            pair for flag in known if (pair := _paired(flag)) is not None and pair.startswith(head)
        ]
    return candidates[0] + name.removeprefix(head) if len(candidates) == 1 else name


def _is_of_fork(name: str, of_fork: bool) -> bool:
    return name in advice.FORK_FLAGS or (of_fork and history.flag_span(_defined(name)) is None)


def _check_flag(
    name: str, value: object, release: Release, installed: frozenset[str]
) -> Iterator[Correction]:
    written_out = full_name(name, release)
    head = written_out.partition(".")[0]
    if head in ("model", "help", "version", "config", "port", "host"):
        return
    defined = _defined(head)
    known = history.flags_of(release) | installed
    if head not in known and defined not in known:
        if _is_accepted_pair(head, known, release):
            return
        span = history.flag_span(head) or history.flag_span(defined)
        yield from _check_name(
            head if span else name, span, advice.FLAG_INSTEAD, known, release, name
        )
        return
    if defined in advice.NO_EFFECT and release >= advice.NO_EFFECT[defined][0]:
        detail = f"--{name}: {advice.NO_EFFECT[defined][1]}"
        yield Correction(name, advice.FLAG_INSTEAD.get(defined), Why.NO_EFFECT, detail)
        return
    if (instead := _better_form(written_out, value)) is not None:
        shown = value if isinstance(value, str) else json.dumps(value)
        yield Correction(
            name, instead, Why.BAD_FORM, f"--{name} {shown} is not taken; write {instead}"
        )


def _check_name(
    name: str,
    span: Span | None,
    instead_of: Mapping[str, str | None],
    known: frozenset[str],
    release: Release,
    written: str | None = None,
) -> Iterator[Correction]:
    """What to say about a name that may be unknown."""
    if span is not None and release in span:
        return
    written = written or name
    dashes = "" if name.startswith("VLLM_") else "--"
    instead = instead_of.get(name)
    if span is None and name not in instead_of:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        instead = close[0] if close else None
    advised = f"; instead: {instead}" if instead else "; nothing takes its place: leave it out"
    if span is None:
        what = f"{dashes}{name} never existed in vLLM{advised}"
        yield Correction(written, instead, Why.NEVER_EXISTED, what)
    elif release < span.first:
        what = f"{dashes}{name} exists since vLLM {history.show(span.first)} only{advised}"
        yield Correction(written, instead, Why.NEVER_EXISTED, what)
    else:
        gone = f"{dashes}{name} is gone: vLLM {history.show(span.last)} was the last to know it"
        yield Correction(written, instead, Why.GONE, gone + advised)


def _defined(name: str) -> str:
    return positive_form(name) if is_boolean(name) else name


def _paired(flag: str) -> str | None:
    return "disable-" + flag.removeprefix("enable-") if flag.startswith("enable-") else None


def _is_accepted_pair(name: str, known: frozenset[str], release: Release) -> bool:
    if release < _PAIRS_AGAIN:
        return False
    bare = name.removeprefix("no-")
    other = {"disable": "enable", "enable": "disable"}.get(bare.partition("-")[0])
    return other is not None and f"{other}-{bare.partition('-')[2]}" in known


def _better_form(name: str, value: object) -> str | None:
    """How a value is written right; ``None`` where it is, or nothing can be said."""
    if not isinstance(value, str):
        return None
    if "$" in value or "{{" in value or "<" in value:
        return None
    if is_boolean(name):
        return f"--{name}" if value.lower() in ("true", "1") else f"--no-{name.removeprefix('no-')}"
    if name == "limit-mm-per-prompt" and not value.lstrip().startswith("{"):
        return _counts_as_json(value)
    if choices := _CHOICES.get(name):
        return None if value in choices else " or ".join(choices)
    if name in _JSON_FLAGS and value.lstrip().startswith(("{", "[")):
        try:
            json.loads(value)
        except ValueError:
            return f"--{name} with valid JSON in single quotes, or --{name}.KEY VALUE"
    return None


def _counts_as_json(value: str) -> str:
    """``image=12,video=1`` → the two ways that are taken."""
    counts = [part.partition("=") for part in value.split(",")]
    if not all(number.strip().isdecimal() for _, _, number in counts):
        return '{"image": N} or --limit-mm-per-prompt.image N'
    written = {name.strip(): int(number) for name, _, number in counts}
    dotted = " ".join(f"--limit-mm-per-prompt.{name} {count}" for name, count in written.items())
    return f"{json.dumps(written)} or {dotted}"
