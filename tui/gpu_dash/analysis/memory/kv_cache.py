"""The arithmetic of vLLM's KV cache: bytes per token, blocks, tokens, concurrency.

Exact for the token count where the bytes given to the cache are known, and checked against
servers that printed theirs. Read in vLLM 0.33, ``v1/core/kv_cache_utils.py`` and
``v1/kv_cache_interface.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gpu_dash.analysis.memory.shape import ModelShape
from gpu_dash.analysis.memory.weights import Split

FP8_KINDS = ("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla")
BATCHES_IN_FLIGHT = 2
"""Asynchronous scheduling holds the tokens of two steps; it is the default since 0.14."""
_EVEN_ENOUGH = 1.5
"""Below this ratio of the kinds of layers vLLM pads the smaller kind instead of dividing the
larger."""


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
    state_element_bytes: int = 2
    """Of the state of linear and Mamba layers, which has the model's type."""


def bytes_per_token(shape: ModelShape, split: Split, element_bytes: int) -> int:
    """Bytes that one token takes on the fullest card, over the layers that keep it."""
    layers = shape.full_layers + shape.sliding_layers
    return math.ceil(layers / split.pipeline) * _layer_bytes(shape, split, element_bytes)


def kv_cache(shape: ModelShape, split: Split, kv_bytes: int, settings: CacheSettings) -> KvCache:
    """What ``kv_bytes`` on each card hold.

    All kinds of layers draw equal blocks from one pool. Layers of one kind are divided into groups
    of equal size, and each group keeps its own blocks of a request: all of its tokens, those of a
    window, or one state whatever the length.
    """
    layer = _layer_bytes(shape, split, settings.element_bytes)
    block_size = _block_size(shape, split, layer, settings)
    kinds = list(_kinds(shape, split, block_size, settings))
    group = _group_size([layers for layers, _ in kinds])
    per_request = sum(math.ceil(layers / group) * blocks for layers, blocks in kinds)
    page = max(layer * block_size, state_bytes(shape, split, settings.state_element_bytes))
    blocks = max(0, kv_bytes) // max(1, page * group)
    concurrency = blocks / max(1, per_request)
    return KvCache(
        bytes_per_token=bytes_per_token(shape, split, settings.element_bytes),
        blocks=blocks,
        tokens=int(concurrency * settings.max_model_len),
        max_concurrency=concurrency,
    )


def state_bytes(shape: ModelShape, split: Split, element_bytes: int) -> int:
    """What a linear or Mamba layer keeps of one request on one card; 0 where there is none, or
    where the config does not say how large it is."""
    return shape.state_elements // split.tensor * element_bytes


def kv_element_bytes(kv_dtype: str, model_bytes: int) -> int:
    """Bytes of one element of the cache."""
    if kv_dtype.lower() in FP8_KINDS or kv_dtype.lower().startswith(("fp8", "int8")):
        return 1
    return 4 if kv_dtype in ("float", "float32") else 2 if kv_dtype != "auto" else model_bytes


def _layer_bytes(shape: ModelShape, split: Split, element_bytes: int) -> int:
    """Of one token. A latent is one for all heads, so every card of a TP group has it whole; heads
    of keys and values that are fewer than the cards are copied."""
    if shape.latent is not None:
        return shape.latent.entry * element_bytes
    kv_heads = max(1, shape.kv_heads // split.tensor)
    return 2 * kv_heads * shape.head_dim * element_bytes


def _block_size(shape: ModelShape, split: Split, layer: int, settings: CacheSettings) -> int:
    """Tokens of a block: enough for a block to hold the state of a layer of the other kind."""
    state = state_bytes(shape, split, settings.state_element_bytes)
    if not state or not shape.fixed_state_layers:
        return settings.block_size
    blocks = math.ceil(state / (layer * settings.block_size))
    return max(1, blocks) * settings.block_size


def _kinds(
    shape: ModelShape, split: Split, block_size: int, settings: CacheSettings
) -> Iterator[tuple[int, int]]:
    """``(layers on the fullest card, blocks that one request takes of each group)``."""
    longest = math.ceil(settings.max_model_len / block_size)
    if shape.full_layers:
        yield math.ceil(shape.full_layers / split.pipeline), longest
    if shape.sliding_layers and shape.sliding_window is not None:
        in_flight = BATCHES_IN_FLIGHT * settings.batched_tokens
        kept = min(shape.sliding_window - 1 + in_flight, settings.max_model_len)
        # one more: a window may begin inside of a block
        window = min(math.ceil(kept / block_size) + 1, longest + 1)
        yield math.ceil(shape.sliding_layers / split.pipeline), window
    if shape.fixed_state_layers:
        yield math.ceil(shape.fixed_state_layers / split.pipeline), 1


def _group_size(layers: list[int]) -> int:
    if not layers:
        return 1
    least, most = min(layers), max(layers)
    return max(1, most if most < least * _EVEN_ENOUGH else least)
