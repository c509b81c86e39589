"""The arithmetic of vLLM's KV cache: bytes per token, blocks, tokens, concurrency.

Exact for the token count where the bytes given to the cache are known, and checked against
servers that printed theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu_dash.analysis.memory.shape import ModelShape
from gpu_dash.analysis.memory.weights import Split

FP8_KINDS = ("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla")


@dataclass(frozen=True)
class KvCache:
    """What a cache of so many bytes holds."""

    bytes_per_token: int
    """On one card, if every layer kept every token."""
    blocks: int
    tokens: int
    """vLLM's ``GPU KV cache size``: the concurrency times the longest context."""
    max_concurrency: float


@dataclass(frozen=True)
class CacheSettings:
    """What the launch says about the cache."""

    element_bytes: int
    block_size: int = 16
    max_model_len: int = 8192
    batched_tokens: int = 8192
    """``--max-num-batched-tokens``: what a sliding window keeps beside itself."""


def bytes_per_token(shape: ModelShape, split: Split, element_bytes: int) -> int:
    """Bytes that one token takes on the fullest card, over the layers that keep it."""
    layers = shape.full_layers + shape.sliding_layers
    return math.ceil(layers / split.pipeline) * _layer_bytes(shape, split, element_bytes)


def kv_cache(shape: ModelShape, split: Split, kv_bytes: int, settings: CacheSettings) -> KvCache:
    """What ``kv_bytes`` on each card hold.

    Layers that look at a window alone keep only that much of a request; layers with a state of
    fixed size are not counted here.
    """
    layer = _layer_bytes(shape, split, settings.element_bytes)
    per_token = bytes_per_token(shape, split, settings.element_bytes)
    longest = math.ceil(settings.max_model_len / settings.block_size)
    group = max(1, math.ceil((shape.full_layers + shape.sliding_layers) / split.pipeline))
    per_request = longest
    if shape.sliding_window is not None:
        kept = min(shape.sliding_window - 1 + settings.batched_tokens, settings.max_model_len)
        window = math.ceil(kept / settings.block_size)
        full, sliding = shape.full_layers, shape.sliding_layers
        # groups of equal size share one pool: the smaller kind decides how large a group is
        group = math.ceil(min(full, sliding) / split.pipeline) if full and sliding else group
        groups = (
            math.ceil(full / split.pipeline / group),
            math.ceil(sliding / split.pipeline / group),
        )
        per_request = longest * groups[0] + window * groups[1]
    blocks = max(0, kv_bytes) // (settings.block_size * group * layer)
    concurrency = blocks / max(1, per_request)
    return KvCache(
        bytes_per_token=per_token,
        blocks=blocks,
        tokens=int(concurrency * settings.max_model_len),
        max_concurrency=concurrency,
    )


def kv_element_bytes(kv_dtype: str, model_bytes: int) -> int:
    """Bytes of one element of the cache."""
    if kv_dtype.lower() in FP8_KINDS or kv_dtype.lower().startswith(("fp8", "int8")):
        return 1
    return 4 if kv_dtype in ("float", "float32") else 2 if kv_dtype != "auto" else model_bytes


def _layer_bytes(shape: ModelShape, split: Split, element_bytes: int) -> int:
    if shape.latent is not None:
        return shape.latent.entry * element_bytes
    kv_heads = max(1, shape.kv_heads // split.tensor)
    return 2 * kv_heads * shape.head_dim * element_bytes
