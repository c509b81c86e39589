"""Profile → argument list, environment and cards."""

from __future__ import annotations

import sys

import pytest

from gpu_dash.model.errors import UsageError
from gpu_dash.model.profile import FlagValue, Profile, ServerProfile
from gpu_dash.model.workers import Parallel
from gpu_dash.server.command_line import build_command, flag_arguments, parallel_of


def profile(**server: object) -> Profile:
    return Profile(server=ServerProfile(model="acme/m", **server), name="p")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        ({"trust-remote-code": True}, ["--trust-remote-code"]),
        ({"enable-prefix-caching": False}, ["--no-enable-prefix-caching"]),
        ({"tensor-parallel-size": 4}, ["--tensor-parallel-size", "4"]),
        ({"gpu-memory-utilization": 0.92}, ["--gpu-memory-utilization", "0.92"]),
        ({"cudagraph-capture-sizes": [1, 2]}, ["--cudagraph-capture-sizes", "1", "2"]),
        ({"compilation-config": '{"mode": 3}'}, ["--compilation-config", '{"mode": 3}']),
    ],
)
def test_flags_become_arguments(flags: dict[str, FlagValue], arguments: list[str]) -> None:
    assert flag_arguments(flags) == arguments


def test_the_model_stands_before_the_flags() -> None:
    line = build_command(profile(flags={"max-num-seqs": 4}), {}, 8001)
    assert line.argv == (
        *("vllm", "serve", "acme/m", "--host", "127.0.0.1", "--port", "8001"),
        *("--max-num-seqs", "4"),
    )
    assert line.base_url == "http://127.0.0.1:8001"


def test_python_stands_for_the_one_that_runs() -> None:
    line = build_command(profile(command=("{python}", "-m", "x")), {}, 1)
    assert line.argv[0] == sys.executable


def test_the_profiles_variables_go_on_top_of_the_persons() -> None:
    line = build_command(profile(env={"A": "profile"}), {"A": "shell", "B": "shell"}, 1)
    assert (line.environment["A"], line.environment["B"]) == ("profile", "shell")


def test_the_key_goes_by_environment_and_never_by_argument() -> None:
    line = build_command(profile(api_key_env="MY_KEY"), {"MY_KEY": "s3cret"}, 1)
    assert line.environment["VLLM_API_KEY"] == "s3cret"
    assert line.api_key == "s3cret"
    assert "s3cret" not in str(line)
    assert "s3cret" not in repr(line)


def test_a_key_that_is_not_set_is_named() -> None:
    with pytest.raises(UsageError, match="MY_KEY is not set"):
        build_command(profile(api_key_env="MY_KEY"), {}, 1)


def test_a_shutdown_timeout_reaches_the_server() -> None:
    line = build_command(profile(shutdown_timeout="30s"), {}, 1)
    assert line.argv[-2:] == ("--shutdown-timeout", "30")


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:9"), ("::", "http://[::1]:9"), ("::1", "http://[::1]:9")],
)
def test_a_server_on_all_addresses_is_reached_over_loopback(host: str, url: str) -> None:
    assert build_command(profile(host=host), {}, 9).base_url == url


@pytest.mark.parametrize(
    ("flags", "parallel"),
    [
        ({}, Parallel()),
        ({"tensor-parallel-size": 2}, Parallel(tensor=2)),
        ({"tp": 2, "pipeline-parallel-size": 2}, Parallel(tensor=2, pipeline=2)),
        ({"dp": 4, "tensor-parallel-size": "two"}, Parallel(data=4)),
    ],
)
def test_how_a_server_spreads(flags: dict[str, FlagValue], parallel: Parallel) -> None:
    assert parallel_of(profile(flags=flags)) == parallel
