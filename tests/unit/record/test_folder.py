"""Session folders: their names, and how a person names one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from gpu_dash.model.errors import RecordError
from gpu_dash.record.folder import (
    META_FILE,
    check_session_folder,
    find_session,
    new_session_folder,
    session_folders,
    sessions_root,
)


def test_the_root_follows_the_xdg_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert re.fullmatch(rf"{tmp_path}/gpu-dash/[0-9a-f]{{12}}/sessions", str(sessions_root()))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert sessions_root().is_relative_to(tmp_path / "home" / ".local" / "state")


@pytest.mark.parametrize(
    ("label", "tail"),
    [
        ("", r""),
        ("simulated", r"-simulated"),
        ("TP=2, 32B / warm", r"-TP-2-32B-warm"),
        ("../../etc", r"-etc"),
        ("größe", r"-gr-e"),
        ("-.-", r""),
        ("x" * 200, "-" + "x" * 40),
    ],
)
def test_a_name_is_the_moment_and_the_label(tmp_path: Path, label: str, tail: str) -> None:
    root = tmp_path / "sessions"
    folder = new_session_folder(label, root=root)
    assert folder.parent == root
    assert re.fullmatch(r"\d{8}-\d{6}" + tail, folder.name)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert root.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("label", ["x", ""])
def test_names_are_unique_within_a_second(tmp_path: Path, label: str) -> None:
    folders = {new_session_folder(label, root=tmp_path) for _ in range(5)}
    assert len(folders) == 5


def test_a_root_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="Not a directory; set XDG_STATE_HOME"):
        new_session_folder("x", root=tmp_path / "file" / "sessions")


def test_a_named_folder_may_be_new_or_empty(tmp_path: Path) -> None:
    check_session_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    check_session_folder(tmp_path / "a" / "b")


def test_a_named_folder_that_will_not_do_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    cases = {
        tmp_path / "full": "not empty",
        tmp_path / "file": "not a folder",
        tmp_path / "file" / "below": "Not a directory",
        tmp_path / "dangling": "not a folder",
    }
    for path, words in cases.items():
        with pytest.raises(RecordError, match=words) as error:
            check_session_folder(path)
        assert str(path) in str(error.value)
    (tmp_path / "read-only").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(RecordError, match="cannot be written"):
        check_session_folder(tmp_path / "read-only")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "sessions"
    for name in ("20260801-120000-a", "20260801-130000-b", "20260802-090000-a"):
        (root / name).mkdir(parents=True)
        (root / name / META_FILE).write_text("")
    (root / "20260803-000000-not-yet").mkdir()
    (root / "stray.txt").write_text("")
    return root


def test_only_recorded_folders_are_sessions_oldest_first(root: Path, tmp_path: Path) -> None:
    assert [folder.name for folder in session_folders(root)] == [
        "20260801-120000-a",
        "20260801-130000-b",
        "20260802-090000-a",
    ]
    assert session_folders(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("20260801-130000-b", "20260801-130000-b"),
        ("20260801-13", "20260801-130000-b"),
        ("20260802", "20260802-090000-a"),
        ("last", "20260802-090000-a"),
    ],
)
def test_a_session_is_found_by_name_prefix_or_last(root: Path, text: str, name: str) -> None:
    assert find_session(text, root=root) == root / name


def test_a_session_is_found_by_path(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = root / "20260801-120000-a"
    assert find_session(str(folder), root=root / "other") == folder
    monkeypatch.chdir(folder)
    assert find_session(".", root=root / "other") == Path(".")
    monkeypatch.chdir(root)
    assert find_session("20260801-120000-a", root=root / "other") == Path("20260801-120000-a")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("20260801", "could be 20260801-120000-a, 20260801-130000-b; write more"),
        ("nothing", "no session is called 'nothing'"),
        ("", "no session is called ''"),
        ("./nowhere", "no folder"),
        (".", "holds no session"),
    ],
)
def test_a_session_that_cannot_be_told_is_said_in_one_line(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordError, match=words):
        find_session(text, root=root)


def test_last_of_none(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no session was recorded yet"):
        find_session("last", root=tmp_path)
