"""Running the real commands, and a profile that is up in a moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUICK_PROFILE = """\
description = "the stand-in, up in a moment"

[server]
command = ["{{python}}", "-m", "gpu_dash.demo", "serve"]
model = "quick"
port = {port}
ready_timeout = "20s"

[server.flags]
tensor-parallel-size = 2
sim-gpus = 2
sim-startup = 0.2
{flags}

[load]
ramp = [1, 2]
step = "1s"
warmup = "200ms"
prompt_tokens = 16
output_tokens = 16

[gpu]
source = "sim"
simulated_cards = 2
"""


def write_profile(folder: Path, name: str = "quick", *, flags: str = "", port: int = 0) -> Path:
    """A profile for the stand-in with two cards."""
    path = folder / f"{name}.toml"
    path.write_text(QUICK_PROFILE.format(flags=flags, port=port), encoding="utf-8")
    path.chmod(0o600)
    return path


def gpu_dash(
    *arguments: str, timeout: float = 60, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run ``gpu-dash`` to its end, without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "gpu_dash", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        check=False,
        **options,
    )


def start_gpu_dash(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start ``gpu-dash`` without a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "gpu_dash", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def status() -> list[dict[str, Any]]:
    """``gpu-dash status --json``."""
    done = gpu_dash("status", "--json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def wait_for(condition: Callable[[], bool], what: str, timeout: float = 20.0) -> None:
    """Wait for a condition of the world outside."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout:g} s for {what}"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether a process lives (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def session_pids(leader: int) -> list[int]:
    """Living processes of a session."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and is_running(int(entry)):
            try:
                if os.getsid(int(entry)) == leader:
                    found.append(int(entry))
            except OSError:
                continue
    return found
