"""``gpu-dash sessions report``: where the page goes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpu_dash.cli.sessions import command
from gpu_dash.model.errors import RecordError

REFERENCE = Path(__file__).parents[2] / "data" / "h200-tp2"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, ["report", *map(str, arguments)])


def test_it_goes_to_a_private_file_named_after_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(REFERENCE)
    target = tmp_path / "h200-tp2.html"
    assert (result.exit_code, result.stdout) == (0, f"{target}\n")
    assert target.read_text().startswith("<!DOCTYPE html>")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    again = invoke(REFERENCE)
    assert isinstance(again.exception, RecordError)
    assert "--force" in str(again.exception)
    assert invoke(REFERENCE, "--force").exit_code == 0


def test_it_goes_where_it_is_told_to(tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    assert invoke(REFERENCE, "--output", target).exit_code == 0
    assert invoke(REFERENCE, "--output", "-").stdout == target.read_text()


def test_a_folder_without_a_session_is_said(tmp_path: Path) -> None:
    assert isinstance(invoke(tmp_path).exception, RecordError)
