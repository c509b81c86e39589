"""The command line of a vLLM profile, and the simulation's own switches."""

from __future__ import annotations

import pytest

from gpu_dash.demo.arguments import Options, TimedFault, parse
from gpu_dash.demo.failure import Fault


def options(*flags: str, **environment: str) -> Options:
    return parse(["serve", "some/model", *flags], environment)


def test_the_model_alone_is_enough() -> None:
    plain = options()
    assert plain.model == "some/model"
    assert plain.served_model_names == ("some/model",)
    assert (plain.host, plain.port) == ("127.0.0.1", 8000)
    assert (plain.gpus, plain.hot_gpu, plain.tensor_parallel_size) == (4, 2, 1)
    assert plain.api_key is None
    assert plain.faults == ()


def test_flags_of_vllm_that_do_not_matter_here_are_ignored() -> None:
    given = options(
        "--dtype", "bfloat16", "--enforce-eager", "--gpu-memory-utilization=0.9", "--port", "9"
    )
    assert given.port == 9


@pytest.mark.parametrize(
    "flags",
    [
        ["--max-num-seqs", "64", "--tensor-parallel-size", "4"],
        ["--max_num_seqs", "64", "-tp", "4"],
        ["--max_num_seqs=64", "--tensor_parallel_size=4"],
    ],
)
def test_dashes_and_underscores_are_the_same(flags: list[str]) -> None:
    given = options(*flags)
    assert (given.max_num_seqs, given.tensor_parallel_size) == (64, 4)


@pytest.mark.parametrize(
    ("text", "tokens"), [("4096", 4096), ("8k", 8000), ("8K", 8192), ("auto", 8192), ("-1", 8192)]
)
def test_a_context_length_may_have_a_unit(text: str, tokens: int) -> None:
    assert options("--max-model-len", text).max_model_len == tokens


def test_several_names_may_be_served() -> None:
    given = options("--served-model-name", "first", "second", "--port", "1")
    assert given.served_model_names == ("first", "second")


def test_the_key_comes_from_the_flag_or_the_environment() -> None:
    assert options(VLLM_API_KEY="secret").api_key == "secret"
    assert options("--api-key", "flag", VLLM_API_KEY="secret").api_key == "flag"
    assert options(VLLM_API_KEY="").api_key is None


def test_the_line_about_the_flags_lists_them_without_the_key() -> None:
    given = options("--max-num-seqs", "64", "--enforce-eager", "--api-key", "secret").given
    assert given["model_tag"] == "some/model"
    assert given["max_num_seqs"] == "64"
    assert given["enforce_eager"] is True
    assert given["api_key"] == "***"


def test_faults_have_their_moment() -> None:
    given = options("--sim-fault", "nccl_timeout@30", "--sim-fault", "freeze@1.5")
    assert given.faults == (
        TimedFault(Fault.NCCL_TIMEOUT, 30.0),
        TimedFault(Fault.FREEZE, 1.5),
    )


@pytest.mark.parametrize(("gpus", "hot"), [("1", 0), ("2", 1), ("3", 2), ("16", 2)])
def test_the_hot_card_is_one_of_those_there_are(gpus: str, hot: int) -> None:
    assert options("--sim-gpus", gpus).hot_gpu == hot


def test_there_may_be_no_hot_card() -> None:
    assert options("--sim-hot-gpu", "-1").hot_gpu is None


def test_quiet_endpoints_are_a_list() -> None:
    given = options("--disable-access-log-for-endpoints", "/health, /metrics")
    assert given.quiet_endpoints == {"/health", "/metrics"}


@pytest.mark.parametrize(
    "flags",
    [
        ["--port", "70000"],
        ["--port", "many"],
        ["--sim-gpus", "17"],
        ["--sim-gpus", "0"],
        ["--sim-hot-gpu", "4"],
        ["--sim-fault", "melt@3"],
        ["--sim-fault", "crash"],
        ["--sim-time-scale", "0"],
        ["--max-model-len", "much"],
        ["--sim-startup", "nan"],
    ],
)
def test_a_wrong_value_is_refused_as_vllm_does(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        options(*flags)
    assert caught.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("vllm serve: error: argument --")
