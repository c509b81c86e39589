"""Starting an agent process, and waiting until it answers."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from gpu_dash.agent.home import AgentHome
from gpu_dash.model.errors import AgentError
from gpu_dash.server.processes import reap_in_background

START_S = 20.0
POLL_S = 0.05


async def ensure_agent(home: AgentHome, gpu_source: str | None = None) -> None:
    """Start the agent of a home unless it runs; it lives on after us.

    Raises:
        AgentError: it did not come up; its own last words are in the message.
    """
    if home.answers():
        return
    home.prepare()
    arguments = [*_scope(), sys.executable, "-P", "-m", "gpu_dash.agent", "--home", home.name]
    if gpu_source is not None:
        arguments += ["--gpu", gpu_source]
    with home.log_path.open("ab") as log:
        start = log.tell()
        agent = _start(arguments, log.fileno())
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if home.answers():
            reap_in_background(agent)
            return
        if agent.poll() is not None and not home.is_running():
            break
        await asyncio.sleep(POLL_S)
    raise AgentError(f"the agent did not start: {_last_words(home.log_path, start)}")


def start_private_agent(home: AgentHome, gpu_source: str) -> subprocess.Popen[bytes]:
    """Start an agent that ends, and stops what it launched, when our end of its stdin closes."""
    home.prepare()
    arguments = [sys.executable, "-P", "-m", "gpu_dash.agent", "--home", home.name]
    with home.log_path.open("ab") as log:
        return subprocess.Popen(
            [*arguments, "--gpu", gpu_source, "--private"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )


async def wait_until_up(home: AgentHome, process: subprocess.Popen[bytes]) -> None:
    """Wait until a private agent answers.

    Raises:
        AgentError: it ended or took too long.
    """
    deadline = time.monotonic() + START_S
    while not home.answers():
        if process.poll() is not None or time.monotonic() > deadline:
            raise AgentError(f"the agent did not start: {_last_words(home.log_path, 0)}")
        await asyncio.sleep(POLL_S)


def _start(arguments: list[str], log: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd="/",
        start_new_session=True,
    )


def _scope() -> list[str]:
    """``systemd-run --user --scope`` where logind ends a user's processes at logout."""
    if shutil.which("systemd-run") is None or not os.environ.get("XDG_RUNTIME_DIR"):
        return []
    asked = (
        subprocess.run(
            [
                *("busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1"),
                *("org.freedesktop.login1.Manager", "KillUserProcesses"),
            ],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
        if shutil.which("busctl")
        else None
    )
    if asked is None or asked.stdout.strip() != "b true":
        return []
    return ["systemd-run", "--user", "--scope", "--quiet", "--collect", "--"]


def _last_words(log: Path, start: int) -> str:
    """The last line that the agent wrote since ``start``."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            said = file.read().decode(errors="replace").strip()
    except OSError:
        said = ""
    return said.rpartition("\n")[2] or f"it said nothing; see {log}"
