"""The report's file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gpu_dash.model.errors import RecordError
from gpu_dash.record.report.write import write_private


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    target = tmp_path / "a.html"
    write_private(target, "page")
    assert target.read_text() == "page"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [target]


def test_nothing_is_written_over_without_force(tmp_path: Path) -> None:
    target = tmp_path / "a.html"
    target.write_text("mine")
    with pytest.raises(RecordError, match="--force"):
        write_private(target, "page")
    assert target.read_text() == "mine"
    write_private(target, "page", is_forced=True)
    assert target.read_text() == "page"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("is_forced", [False, True])
def test_a_link_is_not_followed(tmp_path: Path, is_forced: bool) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    target = tmp_path / "a.html"
    target.symlink_to(precious)
    if is_forced:
        write_private(target, "page", is_forced=True)
        assert not target.is_symlink()
    else:
        with pytest.raises(RecordError):
            write_private(target, "page")
    assert precious.read_text() == "mine"


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="name a file"):
        write_private(tmp_path / "no" / "a.html", "page")
