"""The planner against servers that printed their numbers, and against arithmetic by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpu_dash.analysis.memory.card_types import card_type
from gpu_dash.analysis.memory.plan import GIB, PlanRequest, plan_memory, possible_tensor_sizes
from gpu_dash.analysis.memory.shape import read_shape
from gpu_dash.analysis.memory.weights import Split, parameters, weights_per_gpu
from gpu_dash.cli.plan import command
from gpu_dash.model.errors import UsageError

QWEN3_32B: dict[str, Any] = {
    "num_hidden_layers": 64, "hidden_size": 5120, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 25600, "vocab_size": 151936,
    "max_position_embeddings": 40960, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN3_8B = {
    **QWEN3_32B, "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32,
    "intermediate_size": 12288,
}  # fmt: skip
TINY_QWEN = {
    "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 32, "intermediate_size": 128, "vocab_size": 512, "max_position_embeddings": 2048,
}  # fmt: skip
TINY_LLAMA = {**TINY_QWEN, "num_hidden_layers": 3, "num_key_value_heads": 1, "head_dim": 64}
DEEPSEEK_V3 = {
    "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "intermediate_size": 18432, "vocab_size": 129280,
    "max_position_embeddings": 163840, "kv_lora_rank": 512, "q_lora_rank": 1536,
    "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3, "quantization_config": {"quant_method": "fp8"},
}  # fmt: skip
QWEN3_30B_A3B = {
    "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32,
    "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "vocab_size": 151936,
    "max_position_embeddings": 40960, "num_experts": 128, "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
}  # fmt: skip


QWEN3_NEXT = {
    "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "vocab_size": 151936,
    "max_position_embeddings": 262144, "num_experts": 512, "num_experts_per_tok": 10,
    "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
    "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
}  # fmt: skip
GPT_OSS_20B = {
    "num_hidden_layers": 24, "hidden_size": 2880, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088,
    "max_position_embeddings": 131072, "num_local_experts": 32, "num_experts_per_tok": 4,
    "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 12,
}  # fmt: skip


def request(**changes: Any) -> PlanRequest:
    given: dict[str, Any] = {
        "gpus": 1, "gpu_memory_bytes": 24 * GIB, "split": Split(), "max_model_len": 2048,
        **changes,
    }  # fmt: skip
    return PlanRequest(**given)


@pytest.mark.parametrize(
    ("config", "length", "tokens", "concurrency"),
    [
        (TINY_QWEN, 2048, 2_097_152, 1024.0),
        ({**TINY_QWEN, "torch_dtype": "float32"}, 2048, 2_097_152, 1024.0),
        (TINY_LLAMA, 500, 1_365_250, 2730.5),
    ],
)
def test_tokens_are_exact_where_the_bytes_of_the_cache_are_known(
    config: dict[str, Any], length: int, tokens: int, concurrency: float
) -> None:
    """Printed by vLLM 0.32 on a CPU with 1 GiB of cache and blocks of 128."""
    plan = plan_memory(
        read_shape(config), request(max_model_len=length, kv_bytes=GIB, block_size=128)
    )

    assert (plan.cache.tokens, plan.cache.max_concurrency) == (tokens, concurrency)


def test_two_h200s_with_the_shape_of_qwen3_32b() -> None:
    """A server printed 764,944 tokens and 93.38x, and 30.59 GiB of weights."""
    plan = plan_memory(
        read_shape(QWEN3_32B),
        request(
            gpus=2,
            gpu_memory_bytes=int(139.8 * GIB),
            split=Split(tensor=2),
            utilization=0.90,
            max_model_len=8192,
        ),
    )

    assert plan.fits
    assert plan.cache.tokens == pytest.approx(764_944, rel=0.05)
    assert plan.cache.max_concurrency == pytest.approx(93.38, rel=0.05)
    assert plan.weights_bytes_per_gpu == pytest.approx(30.59 * GIB, rel=0.01)
    assert plan.cache.bytes_per_token == 131_072


@pytest.mark.parametrize(
    ("config", "length", "eager", "tokens", "concurrency", "weights_gib"),
    [
        (QWEN3_8B, 8192, False, 814_368, 99.41, 15.27),
        (QWEN3_32B, 32_768, True, 269_680, 8.23, 61.03),
    ],
)
def test_one_h200(
    config: dict[str, Any],
    length: int,
    eager: bool,
    tokens: int,
    concurrency: float,
    weights_gib: float,
) -> None:
    """Printed by vLLM 0.26 on a card of 143,771 MiB; nothing here was fitted to it."""
    plan = plan_memory(
        read_shape(config),
        request(
            gpu_memory_bytes=143_771 * 2**20, utilization=0.90, max_model_len=length, eager=eager
        ),
    )

    assert plan.cache.tokens == pytest.approx(tokens, rel=0.05)
    assert plan.cache.max_concurrency == pytest.approx(concurrency, rel=0.05)
    assert plan.weights_bytes_per_gpu == pytest.approx(weights_gib * GIB, rel=0.01)


@pytest.mark.parametrize(
    ("config", "billions"),
    [
        (QWEN3_32B, 32.8),
        (QWEN3_30B_A3B, 30.5),
        (DEEPSEEK_V3, 671),
        (QWEN3_NEXT, 80),
        (GPT_OSS_20B, 20.9),
    ],
)
def test_parameters_are_those_that_the_model_is_named_after(
    config: dict[str, Any], billions: float
) -> None:
    assert parameters(read_shape(config)) / 1e9 == pytest.approx(billions, rel=0.01)


@pytest.mark.parametrize(
    ("config", "split", "changes", "expected"),
    [
        (QWEN3_32B, Split(), {}, 64 * 2 * 8 * 128 * 2),
        (QWEN3_32B, Split(tensor=16), {}, 64 * 2 * 1 * 128 * 2),
        (QWEN3_32B, Split(pipeline=3), {}, 22 * 2 * 8 * 128 * 2),
        (QWEN3_32B, Split(), {"kv_dtype": "fp8"}, 64 * 2 * 8 * 128),
        (QWEN3_32B, Split(), {"dtype": "float32"}, 64 * 2 * 8 * 128 * 4),
        ({**QWEN3_32B, "num_key_value_heads": 1}, Split(tensor=4), {}, 64 * 2 * 128 * 2),
        (DEEPSEEK_V3, Split(tensor=8), {}, 61 * 576 * 2),
    ],
)
def test_bytes_of_a_token(
    config: dict[str, Any], split: Split, changes: dict[str, Any], expected: int
) -> None:
    plan = plan_memory(read_shape(config), request(gpus=16, split=split, **changes))

    assert plan.cache.bytes_per_token == expected


def test_layers_that_slide_need_less() -> None:
    sliding = {
        **TINY_QWEN,
        "sliding_window": 256,
        "layer_types": ["sliding_attention", "full_attention"],
    }
    asked = request(kv_bytes=GIB, batched_tokens=256)

    all_full = plan_memory(read_shape(TINY_QWEN), asked)
    half = plan_memory(read_shape(sliding), asked)

    assert half.cache.max_concurrency == pytest.approx(
        all_full.cache.max_concurrency * 2 * 128 / (128 + 49), rel=0.01
    )


def test_layers_with_a_state_keep_one_block_whatever_the_length() -> None:
    """vLLM says of this model that it sets the attention block size to 544 tokens, so that a block
    holds a state; 12 layers of 48 keep tokens, the others make three groups of 12."""
    page = 544 * 2048 * 12
    short, long = (
        plan_memory(
            read_shape(QWEN3_NEXT),
            request(kv_bytes=1000 * page, max_model_len=length, gpu_memory_bytes=200 * GIB),
        )
        for length in (544, 544 * 97)
    )

    assert short.cache.blocks == long.cache.blocks == 1000
    assert short.cache.max_concurrency == pytest.approx(1000 / (1 + 3))
    assert long.cache.max_concurrency == pytest.approx(1000 / (97 + 3))


def test_kinds_of_layers_that_are_even_enough_make_one_group_each() -> None:
    plan = plan_memory(
        read_shape(GPT_OSS_20B),
        request(kv_bytes=GIB, max_model_len=131072, batched_tokens=2048),
    )

    window = math.ceil((127 + 2 * 2048) / 16) + 1
    blocks = GIB // (12 * 16 * 2 * 8 * 64 * 2)
    assert plan.cache.max_concurrency == pytest.approx(blocks / (131072 / 16 + window))


@pytest.mark.parametrize(
    ("split", "experts_on_a_card"),
    [
        (Split(tensor=8), 256 / 8),
        (Split(tensor=1, data=8), 256 / 8),
        (Split(tensor=8, expert_parallel=True), 32),
        (Split(tensor=6, expert_parallel=True), 43),
        (Split(tensor=2, data=4, expert_parallel=True), 32),
    ],
)
def test_experts_are_spread_over_the_cards_of_all_data_parallel_ranks(
    split: Split, experts_on_a_card: float
) -> None:
    shape = read_shape(DEEPSEEK_V3)
    assert shape.experts is not None
    alone = weights_per_gpu(shape, Split(tensor=split.tensor), 1.0, 2)
    spread = weights_per_gpu(shape, split, 1.0, 2)

    each = 3 * shape.hidden * shape.experts.intermediate * 58
    assert alone - spread == pytest.approx((256 / split.tensor - experts_on_a_card) * each)


@pytest.mark.parametrize(
    ("memory", "card", "tokens"),
    [
        (24 * GIB, "", 2048),
        (80 * GIB, "NVIDIA H100 80GB HBM3", 8192),
        (80 * GIB, "NVIDIA A100-SXM4-80GB", 2048),
        (141 * GIB, "", 8192),
        (180 * GIB, "", 16384),
    ],
)
def test_the_largest_step_depends_on_the_card(memory: int, card: str, tokens: int) -> None:
    assert request(gpu_memory_bytes=memory, card=card).step_tokens == tokens


@pytest.mark.parametrize(
    ("text", "name"),
    [("h200", "H200"), ("RTX-4090", "RTX 4090"), ("4090", "RTX 4090"), ("a100 80gb", "A100 80GB")],
)
def test_a_card_is_known_by_its_name(text: str, name: str) -> None:
    found = card_type(text)

    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("text", ["a100", "", "gpu", "h2000"])
def test_a_name_that_is_none_or_several_is_no_card(text: str) -> None:
    assert card_type(text) is None


@pytest.mark.parametrize(
    ("quantization", "bytes_each"), [("fp8", 1.0), ("awq", 0.52), ("gptq", 0.52), (None, 2.0)]
)
def test_quantized_weights(quantization: str | None, bytes_each: float) -> None:
    shape = read_shape(QWEN3_32B)
    plan = plan_memory(shape, request(quantization=quantization))

    embeddings = 2 * shape.vocabulary * shape.hidden
    linear = parameters(shape) - embeddings
    assert plan.weights_bytes_per_gpu == pytest.approx(
        linear * bytes_each + embeddings * 2, rel=0.01
    )


@pytest.mark.parametrize(
    ("heads", "kv_heads", "gpus", "sizes"),
    [
        (40, 8, 8, (1, 2, 4, 8)),
        (28, 4, 8, (1, 2, 4)),
        (64, 8, 16, (1, 2, 4, 8, 16)),
        (25, 5, 4, (1,)),
    ],
)
def test_possible_sizes(heads: int, kv_heads: int, gpus: int, sizes: tuple[int, ...]) -> None:
    config = {**QWEN3_32B, "num_attention_heads": heads, "num_key_value_heads": kv_heads}

    assert possible_tensor_sizes(read_shape(config), gpus) == sizes


@pytest.mark.parametrize(
    ("changes", "reason", "first_knob"),
    [
        ({"gpu_memory_bytes": 24 * GIB}, "the weights need", "1. more or larger GPUs"),
        (
            {"gpu_memory_bytes": 24 * GIB, "gpus": 4},
            "the weights need",
            "1. --tensor-parallel-size",
        ),
        (
            {"gpu_memory_bytes": 70 * GIB, "max_model_len": 40960},
            *("holds no single request", "1. --max-model-len"),
        ),
        (
            {"gpu_memory_bytes": 80 * GIB, "concurrency": 500},
            *("do not fit at once", "1. --kv-cache-dtype fp8"),
        ),
        (
            {"split": Split(tensor=3), "gpus": 4, "gpu_memory_bytes": 80 * GIB},
            *("cannot be divided by TP 3", "possible here: 1, 2, 4"),
        ),
        ({"split": Split(tensor=2), "gpu_memory_bytes": 80 * GIB}, "needs 2 GPUs", "there are 1"),
        ({"max_model_len": 99_999, "gpu_memory_bytes": 140 * GIB}, "more than", "40,960"),
    ],
)
def test_which_limit_is_hit_and_which_knob_comes_first(
    changes: dict[str, Any], reason: str, first_knob: str
) -> None:
    plan = plan_memory(read_shape(QWEN3_32B), request(**changes))

    assert not plan.fits
    assert reason in plan.reasons[0]
    assert first_knob in plan.reasons[0]


def test_the_longest_context_that_is_offered_would_fit() -> None:
    shape, tight = read_shape(QWEN3_32B), request(gpu_memory_bytes=70 * GIB, max_model_len=40960)
    longest = plan_memory(shape, tight).longest_model_len

    assert 0 < longest < 40960
    at_the_limit = request(gpu_memory_bytes=70 * GIB, max_model_len=longest)
    beyond = request(gpu_memory_bytes=70 * GIB, max_model_len=longest + 16)
    assert plan_memory(shape, at_the_limit).fits
    assert not plan_memory(shape, beyond).fits


def test_the_command_prints_what_scripts_rely_on(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"text_config": QWEN3_32B}))
    arguments = [str(tmp_path), "--gpus", "2", "--gpu-memory", "80GiB", "--max-model-len", "8192"]

    result = CliRunner().invoke(command, [*arguments, "--json"], standalone_mode=False)
    too_small = CliRunner().invoke(
        command, [str(config), "--gpu-memory", "8GiB"], standalone_mode=False
    )

    assert list(json.loads(result.output))[:8] == [
        *("fits", "weights_bytes_per_gpu", "kv_bytes_per_token_per_gpu", "kv_tokens"),
        *("max_concurrency", "max_model_len", "tensor_parallel_sizes", "reasons"),
    ]
    assert (result.return_value, too_small.return_value) == (0, 1)
    assert "DOES NOT FIT" in too_small.output


@pytest.mark.parametrize("text", ["[]", "{", "{}", '{"hidden_size": "big"}'])
def test_a_config_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)

    result = CliRunner().invoke(
        command, [str(tmp_path), "--gpu-memory", "8GiB"], standalone_mode=False
    )

    assert isinstance(result.exception, UsageError)


def test_several_cards_make_a_table_and_a_list(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN3_32B))
    arguments = [str(tmp_path), "--gpus", "2", "--gpu-memory", "4090", "--gpu-memory", "80GiB"]

    def run(*more: str) -> tuple[str, int]:
        result = CliRunner().invoke(command, [*arguments, *more], standalone_mode=False)
        return result.output, result.return_value

    table, code = run()
    rows = json.loads(run("--json")[0])
    every = CliRunner().invoke(command, [str(tmp_path), "--every-card"], standalone_mode=False)

    assert [line.split()[:3] for line in table.splitlines()[2:4]] == [
        *(["RTX", "4090", "24.0"], ["80.0", "GiB", "80.0"])
    ]
    assert "more or larger GPUs" in table
    assert code == 0
    assert [(row["card"], row["fits"]) for row in rows] == [("RTX 4090", False), ("80.0 GiB", True)]
    assert "MI300X" in every.output


@pytest.mark.parametrize(
    ("memory", "said"), [("48", "write the unit: 48GiB"), ("h2000", "one of RTX 4090")]
)
def test_a_memory_that_is_none_is_refused_with_what_to_write(memory: str, said: str) -> None:
    result = CliRunner().invoke(command, ["c.json", "--gpu-memory", memory], standalone_mode=False)

    assert said in str(result.exception)
