"""A model's config against the flags, before a launch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_dash.model.errors import PreflightError
from gpu_dash.model.gpu import GpuSample
from gpu_dash.model.profile import FlagValue, GpuProfile, Profile, ServerProfile
from gpu_dash.server.gpu_check import check_gpus
from gpu_dash.server.model_check import check_model, longest_sequence

GIB = 2**30


def profile(model: str = "./m", source: str = "auto", **flags: Any) -> Profile:
    named: dict[str, FlagValue] = {name.replace("_", "-"): flags[name] for name in flags}
    return Profile(
        server=ServerProfile(model=model, flags=named), name="p", gpu=GpuProfile(source=source)
    )


def write_config(folder: Path, **config: Any) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"tensor_parallel_size": 3}, r"3 does not divide the model's 32 .* one of 1, 2, 4, 8, 16"),
        ({"tp": 5}, "5 does not divide"),
        ({"max_model_len": 999_999}, "999999 is more than the model's 4096; write 4096 or less"),
        ({"max_model_len": "8k"}, "8000 is more"),
    ],
)
def test_what_the_model_cannot_do_is_refused_with_what_it_can(
    tmp_path: Path, flags: dict[str, Any], says: str
) -> None:
    write_config(tmp_path / "m", num_attention_heads=32, max_position_embeddings=4096)

    with pytest.raises(PreflightError, match=says):
        check_model(profile(**flags), {}, str(tmp_path))


@pytest.mark.parametrize(
    "flags", [{}, {"tensor_parallel_size": 8}, {"max_model_len": "auto"}, {"max_model_len": 4096}]
)
def test_what_it_can_do_passes(tmp_path: Path, flags: dict[str, Any]) -> None:
    write_config(tmp_path / "m", num_attention_heads=32, max_position_embeddings=4096)

    check_model(profile(**flags), {}, str(tmp_path))


def test_the_language_part_of_a_model_of_several_counts(tmp_path: Path) -> None:
    write_config(tmp_path / "m", text_config={"num_attention_heads": 28})

    with pytest.raises(PreflightError, match="28 attention heads"):
        check_model(profile(tp=8), {}, str(tmp_path))


def test_a_model_in_the_hubs_cache_is_checked(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--acme--model-7b" / "snapshots" / "abc"
    write_config(snapshot, num_attention_heads=28)

    with pytest.raises(PreflightError, match="28 attention heads"):
        check_model(profile("acme/model-7b", tp=8), {"HF_HOME": str(tmp_path)}, "/")
    check_model(profile("acme/another", tp=8), {"HF_HOME": str(tmp_path)}, "/")


def test_whoever_allows_longer_sequences_gets_them(tmp_path: Path) -> None:
    write_config(tmp_path / "m", max_position_embeddings=4096)

    allowed = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}
    check_model(profile(max_model_len=9999), allowed, str(tmp_path))


def test_a_config_that_cannot_be_read_is_left_to_vllm(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{")

    check_model(profile(tp=7), {}, str(tmp_path))


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({}, None),
        ({"max_position_embeddings": 4096, "seq_length": 2048}, 2048),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4}}, 16384),
        (
            {
                "max_position_embeddings": 131072,
                "rope_scaling": {"rope_type": "llama3", "factor": 8},
            },
            131072,
        ),
        (
            {
                "max_position_embeddings": 32768,
                "rope_scaling": {
                    "rope_type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 32768,
                },
            },
            131072,
        ),
    ],
)
def test_the_longest_sequence_is_what_vllm_derives(
    config: dict[str, Any], tokens: int | None
) -> None:
    assert longest_sequence(config) == tokens


# -- the cards ---------------------------------------------------------------------------------


def cards(*used_gib: float) -> dict[int, GpuSample]:
    return {
        gpu: GpuSample(gpu=gpu, memory_used_bytes=int(used * GIB), memory_total_bytes=80 * GIB)
        for gpu, used in enumerate(used_gib)
    }


@pytest.mark.parametrize(
    ("flags", "visible", "problem", "says"),
    [
        ({"tp": 4}, (0, 1), "", r"4 x 1 \(pipeline\) needs 4 GPUs and 2 can be seen"),
        ({"tp": 2, "pp": 2}, (0, 1), "", "needs 4 GPUs"),
        ({"tp": 2}, (1,), "", "needs 2 GPUs and 1 can be seen"),
        ({}, (), "'7' names no card", r"'7' names no card; this host has 2 GPUs \(0, 1\)"),
        ({"tp": 2}, (0, 1), "", r"GPU 1: 20\.0 of 80\.0 GiB are free .* 72\.0.* 0\.25 or less"),
    ],
)
def test_what_the_cards_cannot_hold_is_refused(
    flags: dict[str, Any], visible: tuple[int, ...], problem: str, says: str
) -> None:
    with pytest.raises(PreflightError, match=says):
        check_gpus(profile(**flags), visible, problem, cards(1, 60))


def test_what_the_cards_can_hold_passes() -> None:
    check_gpus(profile(), (0, 1), "", cards(1, 60))
    check_gpus(profile(tp=2, gpu_memory_utilization=0.2), (0, 1), "", cards(1, 60))
    check_gpus(profile(tp=8), (), "", {})
    check_gpus(profile(), (0,), "'9' names no card", cards(1, 60))
    check_gpus(profile(), (1,), "", cards(1, 60), divided=(1,))
    check_gpus(profile(), (0,), "", {0: GpuSample(gpu=0)})
