"""A profile before its launch, on cards and models that are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_dash.doctor.memory import NoCards, plan_profile
from gpu_dash.doctor.profile import Prospect, look_ahead
from gpu_dash.model.errors import UsageError
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.profile import Profile, ServerProfile, TargetProfile
from gpu_dash.model.server import HandleKind

GIB = 2**30
CONFIG = {
    "num_hidden_layers": 64, "hidden_size": 5120, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 25600, "vocab_size": 151936,
    "max_position_embeddings": 40960, "torch_dtype": "bfloat16",
}  # fmt: skip
FLAGS: dict[str, bool | int | float | str | list[str | int | float]] = {
    "tensor-parallel-size": 2, "gpu-memory-utilization": 0.9, "max-model-len": 8192
}  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def profile(model: Path, **flags: Any) -> Profile:
    server = ServerProfile(model=str(model), command=("python3",), port=0, flags=FLAGS | flags)
    return Profile(name="p", server=server, vllm_version="0.26")


def cards(count: int, memory_gib: float = 139.8) -> list[GpuInfo]:
    return [
        GpuInfo(gpu=gpu, name="NVIDIA H200", memory_total_bytes=int(memory_gib * GIB))
        for gpu in range(count)
    ]


def test_the_plan_of_a_profile_is_that_of_its_flags_on_the_cards_it_gets(model: Path) -> None:
    planned = plan_profile(profile(model), {}, "/", cards(8), (0, 26))

    assert planned.request.gpus == 2
    assert planned.plan.max_model_len == 8192
    assert planned.plan.cache.tokens == pytest.approx(764_944, rel=0.01)
    assert planned.ramp_tokens == 32 * (512 + 256)


def test_the_smallest_of_the_visible_cards_decides(model: Path) -> None:
    mixed = [*cards(1, 140), GpuInfo(gpu=1, name="small", memory_total_bytes=48 * GIB)]

    assert plan_profile(profile(model), {}, "/", mixed, (0, 26)).request.card == "small"


def test_fp8_and_other_flags_go_into_the_plan(model: Path) -> None:
    asked = profile(model, **{"kv-cache-dtype": "fp8", "max-model-len": "32k"})

    plan = plan_profile(asked, {}, "/", cards(2), (0, 26)).plan
    assert plan.cache.bytes_per_token == 64 * 2 * 4 * 128
    assert plan.max_model_len == 32_000


def test_without_cards_there_is_a_table_of_types(model: Path) -> None:
    prospect = look_ahead(profile(model), {"PATH": "/usr/bin:/bin"}, "/", [])

    assert prospect.planned is None
    assert "no card here" in prospect.no_plan
    assert "H200" in prospect.other_cards
    assert "RTX 4090" in prospect.other_cards
    with pytest.raises(NoCards):
        plan_profile(profile(model), {}, "/", [], (0, 26))


def test_a_model_that_is_not_here_has_no_plan() -> None:
    with pytest.raises(UsageError, match="not on this host yet"):
        plan_profile(profile(Path("acme/none")), {"HOME": "/none"}, "/", cards(2), (0, 26))


def test_the_refusal_is_that_of_the_corrected_profile(model: Path) -> None:
    old = profile(model, **{"swap-space": 8})

    prospect = look_ahead(old, {"PATH": "/usr/bin:/bin"}, "/", cards(2))

    assert prospect.needs_correction
    assert "swap-space" not in prospect.refused


def test_an_endpoint_is_named_with_what_the_environment_says() -> None:
    target = TargetProfile(base_url="http://127.0.0.1:1", base_url_env="GATE", model_env="MODEL")

    prospect = look_ahead(Profile(target=target), {"GATE": "http://gate", "MODEL": "m"}, "/", [])

    assert prospect.starts == "http://gate, model m"
    assert prospect.corrected is None


COMPOSE = """\
services:
  web: {{image: nginx}}
  llm:
    image: vllm/vllm-openai:v0.33.0
    command: ["{model}", "--tensor-parallel-size", "2", "--max-model-len", "8192", {more}]
"""


def prospect_of(model: Path, folder: Path, compose: str) -> Prospect:
    """What is known before a compose file is brought up on two cards."""
    (folder / "compose.yaml").write_text(compose)
    server = ServerProfile(
        model=str(model), kind=HandleKind.CONTAINER, command=("sh",), port=1,
        compose_file="compose.yaml", compose_service="llm",
    )  # fmt: skip
    return look_ahead(Profile(name="c", server=server), {"PATH": "/bin"}, str(folder), cards(2))


@pytest.mark.parametrize(
    ("more", "wrong"), [("--enforce-eager", []), ('--swap-space, "8"', ["swap-space"])]
)
def test_the_flags_of_a_compose_file_are_checked_and_planned_too(
    model: Path, tmp_path: Path, more: str, wrong: list[str]
) -> None:
    prospect = prospect_of(model, tmp_path, COMPOSE.format(model=model, more=more))

    assert prospect.corrected is not None
    assert [one.name for one in prospect.corrected.checked.corrections] == wrong
    assert not prospect.corrected.is_changed
    assert prospect.planned is not None
    assert prospect.planned.request.split.tensor == 2
    assert prospect.planned.plan.max_model_len == 8192


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("services: {web: {image: nginx}}", "no service 'llm'"),
        ("- a", "no service"),
        ("{", "no valid YAML"),
    ],
)
def test_a_compose_file_that_cannot_be_read_gives_no_plan(
    model: Path, tmp_path: Path, text: str, said: str
) -> None:
    prospect = prospect_of(model, tmp_path, text)

    assert prospect.planned is None
    assert said in prospect.no_plan
