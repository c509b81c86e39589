"""A model's ``config.json`` → the sizes that decide about memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu_dash.model.errors import UsageError

_TEXT_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config")
_FIXED_STATE = ("linear_attention", "mamba", "recurrent", "conv", "kda")
"""Kinds of layers whose state has one size, whatever the length."""


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: one compressed entry per token in place of keys and values."""

    kv_rank: int
    q_rank: int | None
    rope_dim: int
    nope_dim: int
    value_dim: int

    @property
    def entry(self) -> int:
        """Elements that one token keeps in one layer."""
        return self.kv_rank + self.rope_dim


@dataclass(frozen=True)
class Experts:
    """A mixture of experts."""

    count: int
    per_token: int
    intermediate: int
    shared_intermediate: int
    """Width of what every token passes; 0: nothing."""
    dense_layers: int
    """Layers at the front that have no experts."""


@dataclass(frozen=True)
class ModelShape:
    """What memory depends on."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    max_positions: int
    tied_embeddings: bool
    dtype: str
    quantization: str | None
    sliding_window: int | None
    sliding_layers: int
    """How many layers look at the window alone."""
    fixed_state_layers: int
    state_elements: int
    """What one such layer keeps of a request, whatever its length; 0: the config does not say."""
    state_parameters: int
    """Parameters of the mixer of one such layer; 0: taken as those of attention."""
    latent: Latent | None
    experts: Experts | None

    @property
    def full_layers(self) -> int:
        """Layers that keep every token."""
        return self.layers - self.sliding_layers - self.fixed_state_layers


def read_shape(config: Mapping[str, Any]) -> ModelShape:
    """The shape of a model.

    Args:
        config: ``config.json`` as read; multimodal ones nest the part for text.

    Raises:
        UsageError: a size that everything depends on is missing or no number.
    """
    text = next((config[key] for key in _TEXT_CONFIGS if isinstance(config.get(key), dict)), config)
    text = next((text[key] for key in _TEXT_CONFIGS if isinstance(text.get(key), dict)), text)
    hidden = _size(text, "hidden_size", "n_embd", "d_model")
    heads = _size(text, "num_attention_heads", "n_head", "num_heads")
    layers = _size(text, "num_hidden_layers", "n_layer", "num_layers")
    kv_heads = _optional(text, "num_key_value_heads", "n_head_kv", "multi_query_group_num")
    if kv_heads is None:
        kv_heads = 1 if text.get("multi_query") else heads
    window = _window(text)
    sliding, fixed = _layer_kinds(text, layers, window)
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_optional(text, "head_dim") or hidden // heads,
        intermediate=_optional(text, "intermediate_size", "n_inner", "ffn_dim") or 4 * hidden,
        vocabulary=_size(text, "vocab_size"),
        max_positions=_optional(text, "max_position_embeddings", "n_positions", "seq_length")
        or 2048,
        tied_embeddings=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings"))),
        dtype=str(_first(config, text, "torch_dtype", "dtype") or "bfloat16").removeprefix(
            "torch."
        ),
        quantization=_quantization(config, text),
        sliding_window=window if sliding else None,
        sliding_layers=sliding,
        fixed_state_layers=fixed,
        state_elements=_state_elements(text) if fixed else 0,
        state_parameters=_state_parameters(text, hidden) if fixed else 0,
        latent=_latent(text),
        experts=_experts(text),
    )


def _first(config: Mapping[str, Any], text: Mapping[str, Any], *names: str) -> Any:
    return next((part[name] for part in (text, config) for name in names if part.get(name)), None)


def _optional(config: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _size(config: Mapping[str, Any], *names: str) -> int:
    value = _optional(config, *names)
    if value is None:
        raise UsageError(
            f"config.json: `{names[0]}` is missing or no positive number; "
            "is this the config.json of a language model?"
        )
    return value


def _window(text: Mapping[str, Any]) -> int | None:
    if text.get("use_sliding_window") is False:
        return None
    return _optional(text, "sliding_window", "sliding_window_size")


def _layer_kinds(text: Mapping[str, Any], layers: int, window: int | None) -> tuple[int, int]:
    """How many layers slide, and how many keep a state of fixed size."""
    kinds = text.get("layer_types") or text.get("layers_block_type")
    if isinstance(kinds, list) and kinds:
        sliding = sum("sliding" in str(kind) for kind in kinds) if window else 0
        fixed = sum(any(name in str(kind) for name in _FIXED_STATE) for kind in kinds)
        return min(sliding, layers), min(fixed, layers)
    if (interval := _optional(text, "full_attention_interval")) is not None:
        return 0, layers - layers // interval
    if (period := _optional(text, "attn_layer_period")) is not None:
        return 0, layers - len(range(_optional(text, "attn_layer_offset") or 0, layers, period))
    if isinstance(pattern_text := text.get("hybrid_override_pattern"), str):
        return 0, min(pattern_text.count("M"), layers)
    if window is None:
        return 0, 0
    pattern = _optional(text, "sliding_window_pattern")
    if pattern is not None and pattern > 1:
        return layers - layers // pattern, 0
    full_at_front = _optional(text, "max_window_layers")
    if full_at_front is not None and "use_sliding_window" in text:
        return max(0, layers - full_at_front), 0
    return layers, 0


def _state_elements(text: Mapping[str, Any]) -> int:
    """Elements of the state of one linear or Mamba layer: its convolution and its recurrence.

    As vLLM 0.33 has them in ``layers/mamba/mamba_utils.py``: gated delta net, Mamba 2, Mamba 1.
    """
    value_heads = _optional(text, "linear_num_value_heads")
    if value_heads is not None:
        key_dim, value_dim = _delta_net(text, value_heads)
        kernel = _optional(text, "linear_conv_kernel_dim") or 4
        recurrent = value_dim * (_optional(text, "linear_key_head_dim") or 128)
        return (2 * key_dim + value_dim) * (kernel - 1) + recurrent
    state = _optional(text, "mamba_d_state", "ssm_state_size", "state_size")
    if state is None:
        return 0
    kernel = _optional(text, "mamba_d_conv", "conv_kernel") or 4
    heads = _optional(text, "mamba_n_heads", "mamba_num_heads")
    if heads is not None:
        inner = heads * (_optional(text, "mamba_d_head", "mamba_head_dim") or 64)
        groups = _optional(text, "mamba_n_groups", "n_groups") or 1
        return (inner + 2 * groups * state) * (kernel - 1) + inner * state
    inner = _mamba_width(text)
    return inner * (kernel - 1) + inner * state


def _state_parameters(text: Mapping[str, Any], hidden: int) -> int:
    """Parameters of the mixer of such a layer: the projections in and out."""
    value_heads = _optional(text, "linear_num_value_heads")
    if value_heads is not None:
        key_dim, value_dim = _delta_net(text, value_heads)
        return hidden * (2 * key_dim + 3 * value_dim + 2 * value_heads)
    state = _optional(text, "mamba_d_state", "ssm_state_size", "state_size")
    if state is None:
        return 0
    heads = _optional(text, "mamba_n_heads", "mamba_num_heads")
    if heads is not None:
        inner = heads * (_optional(text, "mamba_d_head", "mamba_head_dim") or 64)
        groups = _optional(text, "mamba_n_groups", "n_groups") or 1
        return hidden * (3 * inner + 2 * groups * state + heads)
    inner = _mamba_width(text)
    rank = _optional(text, "mamba_dt_rank", "time_step_rank") or math.ceil(hidden / 16)
    return hidden * 3 * inner + inner * (2 * rank + 3 * state)


def _delta_net(text: Mapping[str, Any], value_heads: int) -> tuple[int, int]:
    """Widths of keys and of values of a gated delta net."""
    key_heads = _optional(text, "linear_num_key_heads") or value_heads
    key_dim = key_heads * (_optional(text, "linear_key_head_dim") or 128)
    return key_dim, value_heads * (_optional(text, "linear_value_head_dim") or 128)


def _mamba_width(text: Mapping[str, Any]) -> int:
    width = _optional(text, "mamba_intermediate_size", "intermediate_size_mamba")
    expand = _optional(text, "mamba_expand", "expand") or 2
    return width or expand * _size(text, "hidden_size", "n_embd", "d_model")


def _latent(text: Mapping[str, Any]) -> Latent | None:
    rank = _optional(text, "kv_lora_rank")
    if rank is None:
        return None
    return Latent(
        kv_rank=rank,
        q_rank=_optional(text, "q_lora_rank"),
        rope_dim=_optional(text, "qk_rope_head_dim") or 64,
        nope_dim=_optional(text, "qk_nope_head_dim") or 128,
        value_dim=_optional(text, "v_head_dim") or 128,
    )


def _experts(text: Mapping[str, Any]) -> Experts | None:
    count = _optional(text, "num_experts", "n_routed_experts", "num_local_experts")
    if count is None or count == 1:
        return None
    width = _optional(text, "moe_intermediate_size", "intermediate_size") or 0
    shared = _optional(text, "shared_expert_intermediate_size")
    if shared is None:
        shared = (_optional(text, "n_shared_experts") or 0) * width
    return Experts(
        count=count,
        per_token=_optional(text, "num_experts_per_tok", "num_experts_per_token") or 1,
        intermediate=width,
        shared_intermediate=shared,
        dense_layers=_optional(text, "first_k_dense_replace") or 0,
    )


def _quantization(config: Mapping[str, Any], text: Mapping[str, Any]) -> str | None:
    for part in (config, text):
        quantization = part.get("quantization_config") or part.get("compression_config")
        if isinstance(quantization, dict):
            method = str(quantization.get("quant_method") or "").lower()
            bits = quantization.get("bits") or quantization.get("w_bit")
            if bits == 8 and method in ("awq", "gptq"):
                return "int8"
            if method == "compressed-tensors":
                return _of_compressed_tensors(quantization)
            return method or None
    return None


def _of_compressed_tensors(quantization: Mapping[str, Any]) -> str:
    groups = quantization.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        if isinstance(weights, dict):
            if weights.get("num_bits") == 4:
                return "awq"
            return "fp8" if weights.get("type") == "float" else "int8"
    return "fp8"
