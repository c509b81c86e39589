"""A ``vllm`` command that is asked for its version and flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_dash.model.errors import UsageError
from gpu_dash.server.flags.check import check_launch
from gpu_dash.server.flags.installed import ask_installed


def vllm(folder: Path, script: str) -> str:
    program = folder / "vllm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_version_and_flags_are_read_from_its_own_words(tmp_path: Path) -> None:
    program = vllm(
        tmp_path,
        'if [ "$1" = --version ]; then echo "WARNING noise"; echo 0.32.1+cpu; '
        'else echo "  --new-flag NEW, --no-new-flag"; fi',
    )

    installed = ask_installed(program, {"PATH": "/usr/bin:/bin"})
    checked = check_launch(
        {"new-flag": True, "swap-space": 4}, (), installed.release, installed=installed.flags
    )

    assert installed.release == (0, 32)
    assert [one.name for one in checked.corrections] == ["swap-space"]


@pytest.mark.parametrize("script", ["exit 3", "echo nothing"])
def test_an_answer_that_is_none(tmp_path: Path, script: str) -> None:
    with pytest.raises(UsageError, match="--vllm-version"):
        ask_installed(vllm(tmp_path, script), {"PATH": "/usr/bin:/bin"})


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not installed here"):
        ask_installed(str(tmp_path / "vllm"), {})
