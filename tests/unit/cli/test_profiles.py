"""``gpu-dash profiles``, and what a profile with a target begins."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpu_dash.cli.profiles import command
from gpu_dash.cli.targets import begin_profile
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.errors import UsageError
from gpu_dash.server.profile_file import load_profile, package_profiles_folder, user_profiles_folder

FIRST = (
    "CUDA_VISIBLE_DEVICES=0,1,2,3 NCCL_P2P_DISABLE=0 python -m vllm.entrypoints.openai.api_server "
    "--model deepseek-ai/DeepSeek-R1-Distill-Qwen-32B --tensor-parallel-size 4 --dtype float16 "
    "--max-model-len 8192 --gpu-memory-utilization 0.90 --max-num-seqs 32 --swap-space 8"
)
SECOND = (
    "VLLM_ATTENTION_BACKEND=FLASHINFER VLLM_QUANTIZE=awq vllm serve /model "
    "--served-model-name ths-deepseek-qwen3-32b --quantization awq_marlin --dtype bfloat16 "
    "--max-seq-len-to-capture 32768 --enable-prefix-caching --trust-remote-code"
)
SHIPPED = sorted(path.stem for path in package_profiles_folder().glob("*.toml"))


def profiles(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, arguments, input=stdin, standalone_mode=False)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_is_right_for_the_version_it_names(name: str) -> None:
    result = profiles("check", name)

    assert (result.return_value, result.exception) == (0, None), result.output


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_can_be_shown(name: str) -> None:
    result = profiles("show", name)

    assert result.exception is None
    assert name in result.output


def test_a_band_is_shown() -> None:
    output = profiles("show", "qwen3-32b-awq-4x4090").output

    assert "900 to 1,100 tok/s at 32 concurrent, TTFT 500ms" in output


@pytest.mark.parametrize(
    ("text", "gone"), [(FIRST, "swap-space"), (SECOND, "max-seq-len-to-capture")]
)
def test_a_command_of_old_becomes_a_profile_that_passes(text: str, gone: str) -> None:
    made = profiles("new", "old", "--from-command", "-", stdin=text)
    checked = profiles("check", "old")

    assert f"corrected: --{gone} is gone" in made.output
    assert (checked.return_value, checked.exception) == (0, None)
    written = load_profile("old")
    assert gone not in written.server.flags
    assert written.vllm_version == "0.33"


def test_a_variable_whose_work_a_flag_does_now() -> None:
    profiles("new", "old", "--from-command", SECOND)

    server = load_profile("old").server
    assert server.flags["attention-backend"] == "FLASHINFER"
    assert server.env == {}


def test_a_dry_run_writes_nothing() -> None:
    result = profiles("new", "dry", "--from-command", FIRST, "--dry-run")

    assert tomllib.loads(result.output)["server"]["flags"]["max-num-seqs"] == 32
    assert not user_profiles_folder().exists()


def test_json_says_what_was_read() -> None:
    result = profiles("new", "dry", "--from-command", FIRST, "--dry-run", "--json")

    assert json.loads(result.output)["corrections"][0] | {"instead": ""} == {
        "name": "swap-space",
        "instead": "",
        "why": "gone",
    }


def test_answers_make_a_profile() -> None:
    profiles("new", "asked", stdin="a/b\n2\n4096\n9000\n")

    server = load_profile("asked").server
    assert (server.model, server.port) == ("a/b", 9000)
    assert server.flags == {"tensor-parallel-size": 2, "max-model-len": 4096}


@pytest.mark.parametrize("name", ["plan", "a/b", "../x", "", ".hidden"])
def test_a_name_that_cannot_be(name: str) -> None:
    assert isinstance(profiles("new", name, "--from-command", FIRST).exception, UsageError)


def test_an_existing_profile_is_not_overwritten() -> None:
    profiles("new", "mine", "--from-command", FIRST)
    before = (user_profiles_folder() / "mine.toml").read_text()

    again = profiles("new", "mine", "--from-command", SECOND)

    assert isinstance(again.exception, UsageError)
    assert (user_profiles_folder() / "mine.toml").read_text() == before


def test_check_against_another_version() -> None:
    result = profiles("check", "qwen3-32b-awq-4x4090", "--vllm-version", "0.9", "--json")

    assert result.return_value == 1
    assert [one["name"] for one in json.loads(result.output)["corrections"]] == [
        "attention-backend"
    ]


def test_a_container_keeps_its_port_and_mounts() -> None:
    text = "docker run --gpus all -p 9000:8000 -v /m:/models vllm/vllm-openai:v0.33.0 /models/x"
    profiles("new", "boxed", "--from-command", text)

    server = load_profile("boxed").server
    assert (server.port, server.image) == (9000, "vllm/vllm-openai:v0.33.0")
    assert server.container_args == (
        *("--gpus", "all", "-v", "/m:/models", "-p", "9000:9000", "--ipc=host"),
    )


def test_a_target_is_watched_with_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TAOTOKEN_API_KEY", "a-key-of-a-test")
    monkeypatch.setenv("TAOTOKEN_BASE_URL", "http://127.0.0.1:9/api/v1")
    monkeypatch.setenv("TAOTOKEN_MODEL", "m")

    begun = begin_profile(load_profile("taotoken"))

    assert isinstance(begun, Watch)
    assert (begun.base_url, begun.model, begun.api_key) == (
        *("http://127.0.0.1:9/api/v1", "m", "a-key-of-a-test"),
    )


def test_extra_fields_go_with_each_request_of_a_target() -> None:
    begun = begin_profile(load_profile("deepseek-v3.2-exp-a100"))

    assert isinstance(begun, Watch)
    assert begun.plan is not None
    assert begun.plan.extra_body == {"dynamic_batch_timeout_ms": 150, "max_parallel": 8}
    assert begun.plan.requests == 5


def test_a_target_without_its_key_is_refused() -> None:
    with pytest.raises(UsageError, match="TAOTOKEN_API_KEY is not set"):
        begin_profile(load_profile("taotoken"))


def test_a_profile_with_a_server_is_launched(tmp_path: Path) -> None:
    assert isinstance(begin_profile(load_profile("local")), Launch)


def test_a_check_writes_the_corrections_into_the_users_own_file() -> None:
    path = user_profiles_folder() / "old.toml"
    path.parent.mkdir(parents=True)
    path.write_text(
        '# mine\nvllm_version = "0.33"\n[server]\nmodel = "a/b"\n[server.flags]\nswap-space = 8\n'
    )
    path.chmod(0o600)

    said, written, again = (
        profiles("check", "old"),
        profiles("check", "old", "--write"),
        profiles("check", "old"),
    )

    assert said.return_value == 1
    assert "corrected: vllm serve a/b" in said.output
    assert (written.return_value, again.return_value) == (0, 0)
    assert path.read_text().startswith("# mine\n")


def test_a_launch_can_be_begun_as_corrected(tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_text('[server]\nmodel = "a/b"\n[server.flags]\nswap-space = 8\nseed = 1\n')
    path.chmod(0o600)

    begun = begin_profile(load_profile(str(path)), corrected=True)

    assert isinstance(begun, Launch)
    assert begun.profile.server.flags == {"seed": 1}


def test_flags_of_a_compose_file_are_checked_and_the_file_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = profiles("check", "qwen-32b-fp16-tp4-compose")
    text = (
        "services:\n  vllm:\n    image: vllm/vllm-openai\n    command: --model a/b --swap-space 4\n"
    )
    (tmp_path / "docker-compose.yml").write_text(text)

    found = profiles("check", "qwen-32b-fp16-tp4-compose")
    written = profiles("check", "qwen-32b-fp16-tp4-compose", "--write")

    assert missing.return_value == 0
    assert "No such file" in missing.output
    assert found.return_value == 1
    assert "--swap-space is gone" in found.output
    assert isinstance(written.exception, UsageError)
    assert (tmp_path / "docker-compose.yml").read_text() == text
