"""A profile's memory plan: its flags and its model's config on the cards of this host."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_dash.agent.server_cards import cards_of_launch
from gpu_dash.analysis.memory.card_types import CARD_TYPES, CardType
from gpu_dash.analysis.memory.plan import (
    MemoryPlan,
    PlanRequest,
    default_utilization,
    plan_memory,
)
from gpu_dash.analysis.memory.shape import ModelShape, read_shape
from gpu_dash.analysis.memory.weights import Split
from gpu_dash.analysis.memory.words import card_table
from gpu_dash.model.errors import UsageError
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.profile import FlagValue, Profile
from gpu_dash.server.command_line import parallel_of
from gpu_dash.server.flags.history import Release
from gpu_dash.server.model_check import find_config, read_config, tokens_of

INDEX = "model.safetensors.index.json"
_TRUE = (True, "true", "True", "1", 1)


class NoCards(UsageError):
    """The model is known and this host has no cards to put it on."""


@dataclass(frozen=True)
class PlannedProfile:
    """What was asked, and the answer."""

    shape: ModelShape
    request: PlanRequest
    plan: MemoryPlan
    ramp_tokens: int
    """Tokens that the ramp's highest step holds at once: its requests, each with prompt and
    output."""


def plan_profile(
    profile: Profile,
    environment: Mapping[str, str],
    folder: str,
    cards: Sequence[GpuInfo],
    release: Release,
) -> PlannedProfile:
    """Put the model of a profile on the cards that it would be given.

    Args:
        profile: a checked profile.
        environment: of the person who launches.
        folder: working directory of that person, for relative paths.
        cards: of this host.
        release: of vLLM; decides about defaults.

    Raises:
        NoCards: there is no card whose memory is known.
        UsageError: the model's config is not on this host.
    """
    shape, checkpoint = _shape(profile, environment, folder)
    visible = cards_of_launch(profile, environment, cards).gpus
    used = visible[: parallel_of(profile).world]
    mine = [card for card in cards if card.gpu in used]
    known = [card for card in mine if card.memory_total_bytes]
    if not known:
        raise NoCards("no card here whose memory is known")
    least = min(known, key=lambda card: card.memory_total_bytes or 0)
    card = CardType(least.name, least.memory_total_bytes or 0)
    request = request_of(profile, len(mine), card, release, checkpoint)
    load = profile.plan()
    return PlannedProfile(
        shape=shape,
        request=request,
        plan=plan_memory(shape, request),
        ramp_tokens=max(load.ramp) * ((load.prompt_tokens or 0) + load.output_tokens),
    )


def table_of_cards(
    profile: Profile, environment: Mapping[str, str], folder: str, release: Release
) -> str:
    """The plan of a profile on as many cards as it asks for, of every type that is known: for a
    host without cards.

    Raises:
        UsageError: the model's config is not on this host.
    """
    shape, checkpoint = _shape(profile, environment, folder)
    gpus = parallel_of(profile).world
    requests = [request_of(profile, gpus, card, release, checkpoint) for card in CARD_TYPES]
    return card_table(shape, requests, [plan_memory(shape, request) for request in requests])


def _shape(
    profile: Profile, environment: Mapping[str, str], folder: str
) -> tuple[ModelShape, int | None]:
    """The model's shape, and the size of its weight files where an index tells it."""
    merged = {**environment, **profile.server.env}
    config = read_config(profile.server.model, merged, folder)
    path = find_config(profile.server.model, merged, folder)
    if config is None or path is None:
        raise UsageError(
            f"{profile.server.model} is not on this host yet, so its config.json is not known"
        )
    return read_shape(config), checkpoint_bytes(path)


def request_of(
    profile: Profile, gpus: int, card: CardType, release: Release, checkpoint: int | None
) -> PlanRequest:
    """What the flags of a profile ask of such cards."""
    flags = profile.server.flags
    parallel = parallel_of(profile)

    def text(*names: str) -> str | None:
        value = _given(flags, *names)
        return None if value is None else str(value)

    utilization = _number(_given(flags, "gpu-memory-utilization", "device-memory-utilization"))
    kv_bytes = _number(_given(flags, "kv-cache-memory-bytes", "kv-cache-memory"))
    batched = tokens_of(_given(flags, "max-num-batched-tokens"))
    return PlanRequest(
        gpus=gpus,
        gpu_memory_bytes=card.memory_bytes,
        card=card.name,
        split=Split(
            tensor=parallel.tensor,
            pipeline=parallel.pipeline,
            data=parallel.data,
            expert_parallel=_given(flags, "enable-expert-parallel") in _TRUE,
        ),
        utilization=utilization or default_utilization(release),
        dtype=text("dtype"),
        quantization=text("quantization"),
        kv_dtype=text("kv-cache-dtype") or "auto",
        max_model_len=tokens_of(_given(flags, "max-model-len")),
        block_size=int(_number(_given(flags, "block-size")) or 16),
        batched_tokens=batched,
        kv_bytes=None if kv_bytes is None else int(kv_bytes),
        checkpoint_bytes=checkpoint,
        eager=_given(flags, "enforce-eager") in _TRUE,
    )


def checkpoint_bytes(config: Path) -> int | None:
    """The size of the weights as the index beside the config gives it."""
    try:
        index = json.loads(config.with_name(INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    metadata = index.get("metadata") if isinstance(index, dict) else None
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    return int(size) if isinstance(size, int | float) and size > 0 else None


def _given(flags: Mapping[str, FlagValue], *names: str) -> FlagValue | None:
    return next((flags[name] for name in names if name in flags), None)


def _number(value: FlagValue | None) -> float | None:
    text = str(value)
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None
