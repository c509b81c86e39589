"""``gpu-dash plan CONFIG.json``: what a model needs on given cards, before a launch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from gpu_dash.analysis.memory.card_types import CARD_TYPES, CardType, card_type
from gpu_dash.analysis.memory.plan import (
    GIB,
    MemoryPlan,
    PlanRequest,
    default_utilization,
    plan_memory,
)
from gpu_dash.analysis.memory.shape import ModelShape, read_shape
from gpu_dash.analysis.memory.weights import Split
from gpu_dash.analysis.memory.words import card_table, plan_facts, plan_headline
from gpu_dash.cli.options import print_json
from gpu_dash.doctor.memory import checkpoint_bytes
from gpu_dash.model.errors import UsageError
from gpu_dash.server.flags.history import NEWEST, parse_release

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|[KMGT]i?B?)?", re.IGNORECASE)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}


class Size(click.ParamType[int]):
    """``48GiB``, ``80GB``, ``1073741824`` → bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            self.fail(f"{value!r} is not a size; write 48GiB or 80GB", param, ctx)
        unit = (match[2] or "B").upper()
        base = 1024 if "I" in unit else 1000
        return int(float(match[1]) * base ** _POWERS.get(unit[0], 0))


class Card(Size):
    """``48GiB``, or the name of a card type: ``h200``, ``rtx-4090``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, CardType):
            return value
        known = card_type(value)
        if known is not None:
            return known
        if _SIZE.fullmatch(value.strip()) is None:
            names = ", ".join(card.name for card in CARD_TYPES)
            self.fail(f"{value!r}: write a size (48GiB) or one of {names}", param, ctx)
        memory_bytes = super().convert(value, param, ctx)
        if memory_bytes < GIB:
            self.fail(f"{value!r} is less than 1 GiB; write the unit: {value}GiB", param, ctx)
        return CardType(f"{memory_bytes / GIB:.1f} GiB", memory_bytes)


@click.command("plan")
@click.argument("config", type=click.Path())
@click.option("--gpus", type=click.IntRange(min=1), default=1, help="How many cards there are.")
@click.option(
    "--gpu-memory",
    "cards",
    type=Card(),
    multiple=True,
    metavar="48GiB|h200",
    help="Of one card, or its type. Several times: a table.",
)
@click.option("--every-card", is_flag=True, help="A table of all card types that are known.")
@click.option(
    "--tp", type=click.IntRange(min=1), help="Tensor parallel size; all cards if left out."
)
@click.option("--pp", type=click.IntRange(min=1), default=1, help="Pipeline parallel size.")
@click.option("--dp", type=click.IntRange(min=1), default=1, help="Data parallel size.")
@click.option("--gpu-memory-utilization", type=click.FloatRange(0.01, 1.0), metavar="0.92")
@click.option("--vllm-version", metavar="X.Y", help="Decides about defaults.")
@click.option(
    "--dtype", metavar="NAME", help="float16, bfloat16, float32; the model's if left out."
)
@click.option("--quantization", metavar="NAME", help="awq, gptq, fp8 …; the model's if left out.")
@click.option("--kv-dtype", default="auto", metavar="NAME", help="auto, fp8.")
@click.option("--max-model-len", type=click.IntRange(min=1), help="The model's if left out.")
@click.option(
    "--max-num-batched-tokens", type=click.IntRange(min=1), help="By the card if left out."
)
@click.option("--block-size", type=click.IntRange(min=1), default=16, help="128 on CPUs.")
@click.option("--kv-cache-memory", type=Size(), metavar="SIZE", help="Given: tokens are exact.")
@click.option("--enable-expert-parallel", is_flag=True, help="Whole experts on each card.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Requests of full length at once.")
@click.option("--enforce-eager", is_flag=True, help="No CUDA graphs.")
@click.option("--json", "as_json", is_flag=True, help="One object.")
def command(
    config: str, cards: tuple[CardType, ...], every_card: bool, as_json: bool, **options: Any
) -> int:
    """Weights, KV cache and concurrency of the model of CONFIG.json (or its folder).

    With several cards it is a table, and the answer is yes if it fits on one of them.
    """
    path = Path(config).expanduser()
    path = path / "config.json" if path.is_dir() else path
    cards = CARD_TYPES if every_card else cards
    if not cards:
        raise UsageError("name the card's memory: --gpu-memory 48GiB, or --every-card")
    shape = read_shape(_read_object(path))
    requests = [_request(options, path, card) for card in cards]
    plans = [plan_memory(shape, request) for request in requests]
    if len(cards) == 1:
        text = _in_words(shape, requests[0], plans[0])
        row: Any = _as_json(plans[0])
    else:
        text = card_table(shape, requests, plans)
        named = zip(cards, plans, strict=True)
        row = [{"card": card.name, **_as_json(plan)} for card, plan in named]
    if as_json:
        print_json(row)
    else:
        click.echo(text)
    return 0 if any(plan.fits for plan in plans) else 1


def _request(options: dict[str, Any], path: Path, card: CardType) -> PlanRequest:
    version = options["vllm_version"]
    release = NEWEST if version is None else parse_release(version)
    split_apart = options["pp"] * options["dp"]
    tensor = options["tp"] or max(1, options["gpus"] // split_apart)
    return PlanRequest(
        gpus=options["gpus"],
        gpu_memory_bytes=card.memory_bytes,
        split=Split(
            tensor=tensor,
            pipeline=options["pp"],
            data=options["dp"],
            expert_parallel=options["enable_expert_parallel"],
        ),
        utilization=options["gpu_memory_utilization"] or default_utilization(release),
        dtype=options["dtype"],
        quantization=options["quantization"],
        kv_dtype=options["kv_dtype"],
        max_model_len=options["max_model_len"],
        concurrency=options["concurrency"],
        block_size=options["block_size"],
        batched_tokens=options["max_num_batched_tokens"],
        kv_bytes=options["kv_cache_memory"],
        checkpoint_bytes=checkpoint_bytes(path),
        eager=options["enforce_eager"],
        card=card.name,
    )


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name a model's config.json") from error
    except ValueError as error:
        raise UsageError(f"{path}: no valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path}: it holds no object; name a model's config.json")
    return value


def _as_json(plan: MemoryPlan) -> dict[str, Any]:
    return {
        "fits": plan.fits,
        "weights_bytes_per_gpu": plan.weights_bytes_per_gpu,
        "kv_bytes_per_token_per_gpu": plan.cache.bytes_per_token,
        "kv_tokens": plan.cache.tokens,
        "max_concurrency": round(plan.cache.max_concurrency, 2),
        "max_model_len": plan.longest_model_len,
        "tensor_parallel_sizes": list(plan.tensor_parallel_sizes),
        "reasons": list(plan.reasons),
        "kv_bytes_per_gpu": plan.kv_bytes_per_gpu,
        "activation_bytes_per_gpu": plan.activation_bytes_per_gpu,
        "peak_bytes_per_gpu": plan.peak_bytes_per_gpu,
        "planned_model_len": plan.max_model_len,
    }


def _in_words(shape: ModelShape, request: PlanRequest, plan: MemoryPlan) -> str:
    verdict = "fits" if plan.fits else "DOES NOT FIT"
    lines = [f"{verdict}: {plan_headline(shape, request)}"]
    lines += [f"  {label.ljust(16)} {text}" for label, text in plan_facts(request, plan)]
    return "\n".join([*lines, *(f"  {reason}" for reason in plan.reasons)])
