"""Flags and variables as a release takes them, made from those that it does not."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gpu_dash.model.profile import FlagValue, Profile
from gpu_dash.server.flags import history
from gpu_dash.server.flags.check import CheckedLaunch, Correction, Why, check_launch, full_name
from gpu_dash.server.flags.history import Release
from gpu_dash.server.flags.shapes import is_boolean

SURE = 0.85
"""How alike a name that never existed and the one that was meant must be, for the one to be put
in place of the other without asking."""
_COUNTS = re.compile(r"[\w-]+=\d+(?:,[\w-]+=\d+)*")
_FLAG_OF_VARIABLE = {"VLLM_ATTENTION_BACKEND": "attention-backend"}
"""Variables whose value goes to a flag as it is."""
_RENAMED = {
    "model-name": "served-model-name",
    "guided-decoding-backend": "structured-outputs-config.backend",
    "speculative-model": "speculative-config.model",
    "num-speculative-tokens": "speculative-config.num_speculative_tokens",
    "tp-size": "tensor-parallel-size",
    "num-gpus": "tensor-parallel-size",
    "context-length": "max-model-len",
    "max-seq-len": "max-model-len",
    "cuda-graph-sizes": "cudagraph-capture-sizes",
}
"""Flags whose value goes to another name as it is."""
_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


@dataclass(frozen=True)
class CorrectedFlags:
    """What a release takes, and what only a person can put right."""

    flags: dict[str, FlagValue]
    env: dict[str, str]
    left: tuple[Correction, ...]
    """Values whose right form is not known: they stand as they were."""


@dataclass(frozen=True)
class CorrectedProfile:
    """A profile as its vLLM takes it."""

    profile: Profile
    checked: CheckedLaunch
    """What was wrong before."""
    left: tuple[Correction, ...]

    @property
    def is_changed(self) -> bool:
        """Whether anything was put right."""
        return len(self.left) < len(self.checked.corrections)


def release_of(profile: Profile) -> Release:
    """The release that a profile is written for; the newest one known if it names none."""
    version = profile.vllm_version
    return history.NEWEST if version is None else history.parse_release(version)


def correct_profile(profile: Profile, release: Release) -> CorrectedProfile:
    """Put right what a release would refuse or not heed."""
    server = profile.server
    checked = check_launch(dict(server.flags), tuple(server.env), release)
    right = correct_flags(server.flags, server.env, checked.corrections, release)
    server = msgspec.structs.replace(server, flags=right.flags, env=right.env)
    corrected: Profile = msgspec.structs.replace(profile, server=server)
    return CorrectedProfile(corrected, checked, right.left)


def correct_flags(
    flags: Mapping[str, FlagValue],
    env: Mapping[str, str],
    corrections: Sequence[Correction],
    release: Release,
) -> CorrectedFlags:
    """Rename what has another name now, write values in their right form, drop what is gone.

    Args:
        flags: long names without dashes.
        env: the variables that the launch sets.
        corrections: what :func:`~gpu_dash.server.flags.check.check_launch` says of them.
        release: of vLLM.
    """
    wrong = {one.name: one for one in corrections}
    right: dict[str, FlagValue] = {}
    left: list[Correction] = []
    for name, value in flags.items():
        correction = wrong.get(name)
        if correction is None:
            right[full_name(name, release)] = value
        elif correction.why is Why.BAD_FORM:
            written = _in_good_form(name, value)
            left += [] if written else [correction]
            right |= written or {name: value}
        elif (other := _other_name(correction, release)) is not None:
            right.setdefault(other, value)
    for variable, flag in _FLAG_OF_VARIABLE.items():
        if variable in wrong and (given := env.get(variable)):
            right.setdefault(flag, given)
    return CorrectedFlags(right, _correct_variables(env, wrong, release), tuple(left))


def _correct_variables(
    env: Mapping[str, str], wrong: Mapping[str, Correction], release: Release
) -> dict[str, str]:
    known = history.variables_of(release)
    right: dict[str, str] = {}
    for name, value in env.items():
        correction = wrong.get(name)
        if correction is None:
            right[name] = value
        elif correction.instead in known:
            right.setdefault(correction.instead or name, value)
    return right


def _other_name(correction: Correction, release: Release) -> str | None:
    """The flag that takes the same value; ``None``: there is none, or none that is sure."""
    name, instead = correction.name, correction.instead
    if name in _RENAMED:
        return _RENAMED[name]
    if instead is None or instead not in history.flags_of(release):
        return None
    is_alike = difflib.SequenceMatcher(None, name, instead).ratio() >= SURE
    return instead if is_alike and is_boolean(name) == is_boolean(instead) else None


def _in_good_form(name: str, value: FlagValue) -> dict[str, FlagValue]:
    if not isinstance(value, str):
        return {}
    if is_boolean(name):
        return {name: value.lower() in ("true", "1")}
    if name == "limit-mm-per-prompt" and _COUNTS.fullmatch(value):
        counts = (part.split("=") for part in value.split(","))
        return {f"{name}.{kind}": int(count) for kind, count in counts}
    if name == "dtype" and value in _DTYPES:
        return {name: _DTYPES[value]}
    return {}
