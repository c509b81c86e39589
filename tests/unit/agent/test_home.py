"""Where an agent lives: private folders, one lock, a socket path that fits."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from gpu_dash.agent.home import MAX_SOCKET_PATH_BYTES, AgentHome, all_homes, private_folder
from gpu_dash.model.errors import AgentError


def test_only_one_agent_gets_the_lock() -> None:
    home = AgentHome.named("main")
    assert not home.is_running()
    lock = home.acquire()
    assert lock is not None
    assert home.acquire() is None
    assert home.is_running()
    os.close(lock)
    assert not home.is_running()


def test_the_folders_are_the_users_alone(private_home: Path) -> None:
    home = AgentHome.named("main")
    home.prepare()
    assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.socket_path.parent.stat().st_mode) == 0o700


def test_a_folder_that_others_could_enter_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o777)
    private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_to_elsewhere_is_no_private_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    with pytest.raises(AgentError, match="not a folder of yours"):
        private_folder(link)


def test_a_state_folder_that_cannot_be_made_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    with pytest.raises(AgentError, match="set XDG_STATE_HOME"):
        AgentHome.named("main").prepare()


def test_a_long_path_puts_the_socket_elsewhere(
    monkeypatch: pytest.MonkeyPatch, private_home: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(private_home / ("d" * 90)))
    home = AgentHome.named("main")
    assert len(os.fsencode(home.socket_path)) <= MAX_SOCKET_PATH_BYTES
    assert home.socket_path.parent != home.folder


def test_two_homes_never_share_a_socket(
    monkeypatch: pytest.MonkeyPatch, private_home: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(private_home / ("d" * 90)))
    assert AgentHome.named("main").socket_path != AgentHome.named("run-1").socket_path


def test_main_comes_first() -> None:
    for name in ("demo-1", "main", "run-2"):
        AgentHome.named(name).prepare()
    assert [home.name for home in all_homes()] == ["main", "demo-1", "run-2"]


def test_what_a_private_agent_leaves_is_removed() -> None:
    home = AgentHome.named("run-1")
    home.prepare()
    home.remove()
    assert not home.folder.exists()


def test_the_socket_of_a_killed_agent_does_not_answer() -> None:
    home = AgentHome.named("main")
    lock = home.acquire()
    assert lock is not None
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(home.socket_path))
    assert home.socket_path.exists()
    assert not home.answers()
    os.close(lock)
