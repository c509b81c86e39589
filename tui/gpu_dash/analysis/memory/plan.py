"""Weights, cache, concurrency and possible splits of a model on given cards."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gpu_dash.analysis.memory.kv_cache import CacheSettings, KvCache, kv_cache, kv_element_bytes
from gpu_dash.analysis.memory.shape import ModelShape
from gpu_dash.analysis.memory.weights import (
    Split,
    dtype_bytes,
    quantization_bytes,
    weights_per_gpu,
)

GIB = 2**30
CUDA_GRAPHS_BYTES = int(0.88 * GIB)
"""What vLLM sets aside for CUDA graphs. Measured: two H200s, a 32B shape at TP 2."""
NON_TORCH_BYTES = int(0.07 * GIB)
"""Libraries and NCCL buffers, from the same run."""
DEFAULT_UTILIZATION = 0.92
_LATER_UTILIZATION_FROM = (0, 20)
_EARLIER_UTILIZATION = 0.90
_BATCHED_TOKENS = ((160 * GIB, 16_384), (70 * GIB, 8192), (0, 2048))
"""vLLM's ``--max-num-batched-tokens`` for a server, by the card's memory (0.33,
``engine/arg_utils.py``); an A100 of 80 GB counts as a small card there."""


@dataclass(frozen=True)
class PlanRequest:
    """What is asked."""

    gpus: int
    gpu_memory_bytes: int
    split: Split
    utilization: float = DEFAULT_UTILIZATION
    dtype: str | None = None
    quantization: str | None = None
    kv_dtype: str = "auto"
    max_model_len: int | None = None
    concurrency: int | None = None
    block_size: int = 16
    batched_tokens: int | None = None
    kv_bytes: int | None = None
    """Bytes of the cache on each card, where they are known: then its tokens are exact."""
    checkpoint_bytes: int | None = None
    """Size of all weight files, where it is known."""
    eager: bool = False
    card: str = ""
    """Name of the card, where it is known."""

    @property
    def step_tokens(self) -> int:
        """Tokens of the largest step."""
        default = default_batched_tokens(self.gpu_memory_bytes, self.card)
        return self.batched_tokens or default


@dataclass(frozen=True)
class MemoryPlan:
    """The answer."""

    fits: bool
    weights_bytes_per_gpu: int
    activation_bytes_per_gpu: int
    kv_bytes_per_gpu: int
    cache: KvCache
    max_model_len: int
    """The length that the plan was made for."""
    longest_model_len: int
    """The longest one that a single request could have."""
    tensor_parallel_sizes: tuple[int, ...]
    peak_bytes_per_gpu: int
    """Used with the asked concurrency, each request at its full length."""
    reasons: tuple[str, ...]
    """Why it does not fit, and which knob to turn, the first one first."""


def default_batched_tokens(memory_bytes: int, card: str = "") -> int:
    """``--max-num-batched-tokens`` where none is given."""
    if "a100" in card.lower():
        memory_bytes = 0
    return next(tokens for least, tokens in _BATCHED_TOKENS if memory_bytes >= least)


def default_utilization(release: tuple[int, int]) -> float:
    """``--gpu-memory-utilization`` of a release where none is given."""
    return DEFAULT_UTILIZATION if release >= _LATER_UTILIZATION_FROM else _EARLIER_UTILIZATION


def possible_tensor_sizes(shape: ModelShape, gpus: int) -> tuple[int, ...]:
    """Sizes up to ``gpus`` by which the heads can be divided."""
    return tuple(
        size
        for size in range(1, gpus + 1)
        if shape.heads % size == 0
        and (shape.latent is not None or shape.kv_heads % size == 0 or size % shape.kv_heads == 0)
    )


def plan_memory(shape: ModelShape, request: PlanRequest) -> MemoryPlan:
    """Put a model on cards.

    Raises:
        UsageError: a dtype or quantization that is not known here.
    """
    split = request.split
    element = _element_bytes(shape, request.dtype)
    quantization = request.quantization or shape.quantization
    weights = _weights(shape, request, quantization_bytes(quantization, element), element)
    activation = _activation(shape, request, element)
    length = request.max_model_len or shape.max_positions
    budget = math.ceil(request.gpu_memory_bytes * request.utilization)
    kv_bytes = request.kv_bytes
    if kv_bytes is None:
        kv_bytes = max(0, budget - weights - activation)
    settings = CacheSettings(
        element_bytes=kv_element_bytes(request.kv_dtype, element),
        block_size=request.block_size,
        max_model_len=length,
        batched_tokens=request.step_tokens,
        state_element_bytes=element,
    )
    cache = kv_cache(shape, split, kv_bytes, settings)
    sizes = possible_tensor_sizes(shape, request.gpus)
    longest = _longest(shape, split, kv_bytes, settings)
    reasons = _refusals(shape, request, sizes, weights, budget, cache, longest)
    wanted = (request.concurrency or 1) / cache.max_concurrency if cache.max_concurrency else 0.0
    return MemoryPlan(
        fits=not reasons,
        weights_bytes_per_gpu=weights,
        activation_bytes_per_gpu=activation,
        kv_bytes_per_gpu=kv_bytes,
        cache=cache,
        max_model_len=length,
        longest_model_len=longest,
        tensor_parallel_sizes=sizes,
        peak_bytes_per_gpu=weights + activation + round(kv_bytes * wanted),
        reasons=reasons,
    )


def _element_bytes(shape: ModelShape, dtype: str | None) -> int:
    """Bytes of one element. Asked for nothing, vLLM serves a model of float32 in 16 bits."""
    if dtype is None or dtype == "auto":
        return min(2, dtype_bytes(shape.dtype))
    return dtype_bytes(dtype)


def _weights(shape: ModelShape, request: PlanRequest, linear: float, element: int) -> int:
    split = request.split
    if request.checkpoint_bytes is not None and request.quantization is None:
        return math.ceil(request.checkpoint_bytes / (split.tensor * split.pipeline))
    return weights_per_gpu(shape, split, linear, element)


def _activation(shape: ModelShape, request: PlanRequest, element: int) -> int:
    """What a step of the most tokens needs beside the weights, with graphs and libraries."""
    tokens = request.step_tokens
    experts = shape.experts
    width = shape.intermediate if experts is None else experts.per_token * experts.intermediate
    step = tokens * (3 * width // request.split.tensor + 4 * shape.hidden) * element
    return step + NON_TORCH_BYTES + (0 if request.eager else CUDA_GRAPHS_BYTES)


def _longest(shape: ModelShape, split: Split, kv_bytes: int, settings: CacheSettings) -> int:
    """The longest request that the cache holds alone: whole blocks, found by halving."""
    low, high = 0, shape.max_positions
    while low < high:
        middle = (low + high + 1) // 2
        tried = replace(settings, max_model_len=middle)
        if kv_cache(shape, split, kv_bytes, tried).max_concurrency >= 1:
            low = middle
        else:
            high = middle - 1
    return low


def _refusals(
    shape: ModelShape,
    request: PlanRequest,
    sizes: tuple[int, ...],
    weights: int,
    budget: int,
    cache: KvCache,
    longest: int,
) -> tuple[str, ...]:
    """Why it does not come up or not do what was asked. The knobs depend on the limit hit."""
    split, length = request.split, request.max_model_len or shape.max_positions
    reasons: list[str] = []
    if split.tensor not in possible_tensor_sizes(shape, split.tensor):
        reasons.append(
            f"{shape.heads} attention heads ({shape.kv_heads} for keys and values) cannot be "
            f"divided by TP {split.tensor}; possible here: {', '.join(map(str, sizes))}"
        )
    needed = split.tensor * split.pipeline * split.data
    if needed > request.gpus:
        reasons.append(
            f"TP {split.tensor} x PP {split.pipeline} x DP {split.data} needs {needed} GPUs and "
            f"there are {request.gpus}"
        )
    if length > shape.max_positions:
        reasons.append(
            f"--max-model-len {length:,} is more than the model's {shape.max_positions:,}"
        )
    if weights > budget and request.kv_bytes is None:
        larger = [size for size in sizes if size > split.tensor]
        more = f"1. --tensor-parallel-size {larger[0]}; " if larger else "1. more or larger GPUs; "
        reasons.append(
            f"the weights need {weights / GIB:.1f} GiB on each GPU and {budget / GIB:.1f} GiB may "
            f"be used: {more}2. --quantization (4-bit or fp8); 3. --pipeline-parallel-size; "
            "4. --cpu-offload-gb, slow"
        )
    elif cache.max_concurrency < 1:
        reasons.append(
            f"the KV cache holds no single request of {length:,} tokens: 1. --max-model-len "
            f"{longest // 16 * 16}; 2. --kv-cache-dtype fp8; 3. --gpu-memory-utilization, up to "
            "0.95; 4. fewer --max-num-batched-tokens; 5. a larger --tensor-parallel-size"
        )
    elif request.concurrency is not None and request.concurrency > (
        cache.max_concurrency * split.data
    ):
        held = cache.max_concurrency * split.data
        reasons.append(
            f"{request.concurrency} requests of {length:,} tokens do not fit at once, "
            f"{held:.1f} do: 1. --kv-cache-dtype fp8 doubles that; 2. a smaller --max-model-len; "
            "3. a larger --tensor-parallel-size; 4. --max-num-seqs "
            f"{max(1, int(held))}, so that they wait and are not preempted"
        )
    return tuple(reasons)
