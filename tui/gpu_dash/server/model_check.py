"""What a model's ``config.json`` and the profile's flags say of each other before a launch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpu_dash.model.errors import PreflightError
from gpu_dash.model.profile import FlagValue, Profile
from gpu_dash.server.command_line import parallel_of

_LENGTHS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
)
"""Where vLLM looks for the longest sequence; the smallest counts."""
_SCALED_ALREADY = ("su", "longrope", "llama3")
"""Kinds of position scaling whose factor is in the length already."""
_SUFFIXES = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")


def check_model(profile: Profile, environment: Mapping[str, str], folder: str) -> None:
    """Refuse what vLLM would refuse once it has read the model's config.

    A model that is not on this host cannot be checked and passes.

    Args:
        profile: a checked profile.
        environment: of the person who launches.
        folder: working directory of that person, for relative paths.

    Raises:
        PreflightError: with the values that would do.
    """
    merged = {**environment, **profile.server.env}
    config = read_config(profile.server.model, merged, folder)
    if config is None:
        return
    where = f"profile {profile.name!r}"
    flags = profile.server.flags
    tensor_parallel = parallel_of(profile).tensor
    heads = config.get("num_attention_heads")
    if isinstance(heads, int) and heads > 0 and heads % tensor_parallel:
        sizes = ", ".join(str(size) for size in range(1, min(heads, 16) + 1) if heads % size == 0)
        raise PreflightError(
            f"{where}: `tensor-parallel-size`: {tensor_parallel} does not divide the model's "
            f"{heads} attention heads; write one of {sizes}"
        )
    asked, longest = tokens_of(flags.get("max-model-len")), longest_sequence(config)
    allowed = merged.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0") in ("1", "true", "True")
    if asked is not None and longest is not None and asked > longest and not allowed:
        raise PreflightError(
            f"{where}: `max-model-len`: {asked} is more than the model's {longest}; write "
            f"{longest} or less, or leave it out"
        )


def read_config(model: str, environment: Mapping[str, str], folder: str) -> dict[str, Any] | None:
    """The language part of a model's ``config.json``; ``None`` if it is not on this host."""
    path = find_config(model, environment, folder)
    if path is None:
        return None
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(config, dict):
        return None
    for name in ("text_config", "llm_config", "language_config"):
        if isinstance(config.get(name), dict):
            return {**config, **config[name]}
    return config


def longest_sequence(config: Mapping[str, Any]) -> int | None:
    """The longest sequence that the model was made for; ``None`` if it does not say."""
    lengths = [config[name] for name in _LENGTHS if isinstance(config.get(name), int)]
    if not lengths:
        return None
    longest = float(min(lengths))
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    if isinstance(scaling, dict):
        kind = scaling.get("rope_type", scaling.get("type"))
        factor = scaling.get("factor", 1.0)
        if kind not in _SCALED_ALREADY and isinstance(factor, int | float) and factor > 0:
            original = scaling.get("original_max_position_embeddings")
            if kind == "yarn" and isinstance(original, int):
                longest = float(original)
            longest *= factor
    return int(longest)


def find_config(model: str, environment: Mapping[str, str], folder: str) -> Path | None:
    """A model's ``config.json``: in its folder, or in the cache of the hub."""
    local = Path(folder, model).expanduser() / "config.json"
    if local.is_file():
        return local
    home = environment.get("HOME", "")
    hub = environment.get("HF_HUB_CACHE") or (
        f"{environment.get('HF_HOME') or f'{home}/.cache/huggingface'}/hub"
    )
    snapshots = Path(hub, f"models--{model.strip('/').replace('/', '--')}", "snapshots")
    try:
        found = sorted(snapshots.glob("*/config.json"), key=lambda path: path.stat().st_mtime)
    except OSError:
        return None
    return found[-1] if found else None


def tokens_of(value: FlagValue | None) -> int | None:
    """``4096``, ``"32k"`` → tokens; ``None`` for nothing and for ``auto``."""
    found = _NUMBER.fullmatch(str(value).strip())
    return None if found is None else int(float(found[1]) * _SUFFIXES.get(found[2], 1))
