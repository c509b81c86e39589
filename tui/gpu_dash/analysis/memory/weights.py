"""Parameters of a model, and the bytes that they take on the fullest card."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu_dash.analysis.memory.shape import ModelShape
from gpu_dash.model.errors import UsageError

DTYPE_BYTES = {
    "half": 2,
    "float16": 2,
    "fp16": 2,
    "bfloat16": 2,
    "bf16": 2,
    "float": 4,
    "float32": 4,
    "fp32": 4,
}
"""Bytes of one element, by the names that vLLM and people use."""

_FOUR_BIT = 0.5 + 2.5 / 128
"""4 bits, and a scale of 2 bytes and a zero of half a byte for each group of 128."""
_QUANTIZED_BYTES = {
    "awq": _FOUR_BIT, "awq_marlin": _FOUR_BIT, "auto_awq": _FOUR_BIT, "gptq": _FOUR_BIT,
    "gptq_marlin": _FOUR_BIT, "auto_gptq": _FOUR_BIT, "int4": _FOUR_BIT, "bitsandbytes": _FOUR_BIT,
    "mxfp4": 0.5 + 1 / 32, "nvfp4": 0.5 + 1 / 16, "modelopt_fp4": 0.5 + 1 / 16,
    "fp8": 1.0, "modelopt": 1.0, "fbgemm_fp8": 1.0, "int8": 1.0,
    "experts_int8": 1.0, "gguf": _FOUR_BIT,
}  # fmt: skip
"""Bytes per parameter of the linear layers; embeddings keep the model's dtype."""


@dataclass(frozen=True)
class Split:
    """How a server divides a model."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert_parallel: bool = False
    """Whole experts on each card (``--enable-expert-parallel``), in place of a slice of each."""


def quantization_bytes(quantization: str | None, dtype_bytes: int) -> float:
    """Bytes per parameter of the linear layers.

    Raises:
        UsageError: the method is not known here.
    """
    if quantization is None or quantization == "none":
        return dtype_bytes
    try:
        return _QUANTIZED_BYTES[quantization.lower()]
    except KeyError:
        known = ", ".join(sorted(_QUANTIZED_BYTES))
        raise UsageError(f"--quantization {quantization}: not known here; one of {known}") from None


def dtype_bytes(dtype: str) -> int:
    """Bytes of one element.

    Raises:
        UsageError: the name is none.
    """
    try:
        return DTYPE_BYTES[dtype]
    except KeyError:
        raise UsageError(f"--dtype {dtype}: one of {', '.join(DTYPE_BYTES)}") from None


def weights_per_gpu(
    shape: ModelShape, split: Split, linear_bytes: float, element_bytes: int
) -> int:
    """Bytes of weights on the card that has most of them."""
    layers = math.ceil(shape.layers / split.pipeline)
    stage = sum(
        _linear_parameters(shape, layer, split)
        for layer in range(shape.layers - layers, shape.layers)
    )
    embedding = math.ceil(shape.vocabulary / split.tensor) * shape.hidden
    tables = 1 if shape.tied_embeddings or split.pipeline > 1 else 2
    norms = 2 * shape.hidden * layers
    return round(stage * linear_bytes + (embedding * tables + norms) * element_bytes)


def parameters(shape: ModelShape) -> int:
    """All parameters of the model."""
    linear = sum(_linear_parameters(shape, layer, Split()) for layer in range(shape.layers))
    tables = 1 if shape.tied_embeddings else 2
    return round(linear) + tables * shape.vocabulary * shape.hidden


def _linear_parameters(shape: ModelShape, layer: int, split: Split) -> float:
    """Parameters of one layer's matrices on one card.

    Which layers have a state in place of attention is not asked: their mixers are spread evenly.
    """
    attention = _attention(shape, split.tensor)
    if shape.state_parameters:
        share = shape.fixed_state_layers / shape.layers
        attention += share * (shape.state_parameters / split.tensor - attention)
    return attention + _feed_forward(shape, layer, split)


def _attention(shape: ModelShape, tensor: int) -> float:
    hidden = shape.hidden
    if shape.latent is not None:
        latent, query_dim = shape.latent, shape.latent.nope_dim + shape.latent.rope_dim
        query = shape.heads * query_dim / tensor
        queries = hidden * query if latent.q_rank is None else latent.q_rank * (hidden + query)
        down = hidden * (latent.kv_rank + latent.rope_dim)
        up = latent.kv_rank * shape.heads * (latent.nope_dim + latent.value_dim) / tensor
        return queries + down + up + shape.heads * latent.value_dim / tensor * hidden
    kv_heads = max(1.0, shape.kv_heads / tensor)
    own_heads = shape.heads / tensor
    return hidden * shape.head_dim * (2 * own_heads + 2 * kv_heads)


def _feed_forward(shape: ModelShape, layer: int, split: Split) -> float:
    """Experts are spread over the cards of all data parallel ranks, in slices or whole; what every
    token passes is spread over the tensor parallel ones alone."""
    experts = shape.experts
    if experts is None or layer < experts.dense_layers:
        return 3 * shape.hidden * shape.intermediate / split.tensor
    cards = split.tensor * split.data
    each = 3 * shape.hidden * experts.intermediate
    routed = experts.count * each / cards
    if split.expert_parallel:
        routed = math.ceil(experts.count / cards) * each
    shared = 3 * shape.hidden * experts.shared_intermediate / split.tensor
    return routed + shared + shape.hidden * experts.count
