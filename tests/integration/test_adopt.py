"""A server that was started by hand, taken under supervision."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpu_dash.server.preflight import free_port
from tests.integration.commands import gpu_dash, is_running, status, wait_for


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, Path]]:
    """The stand-in, started as a person would: ``… > server.log 2>&1 &``."""
    port, log = free_port("127.0.0.1", "test"), tmp_path / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "gpu_dash.demo", "serve", "by-hand"),
                *("--port", str(port), "--sim-startup", "0.2", "--tensor-parallel-size", "2"),
            ],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_for(answers, "the server")
    yield server, port, log
    gpu_dash("stop", "--all")
    if server.poll() is None:
        for child in psutil.Process(server.pid).children(recursive=True):
            child.kill()
        server.kill()
    server.wait()


def server_status() -> dict[str, Any]:
    (row,) = status()
    found: dict[str, Any] = row["server"]
    return found


def adopt(*arguments: str) -> str:
    done = gpu_dash("adopt", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_server_on_a_port_is_supervised_and_stopped_with_all_its_processes(
    by_hand: tuple[subprocess.Popen[bytes], int, Path],
) -> None:
    server, port, _log = by_hand
    said = adopt("--port", str(port))
    assert f"looks after pid {server.pid} at http://127.0.0.1:{port}" in said
    wait_for(lambda: server_status()["state"] == "ready", "ready")
    assert server_status()["model"] == "by-hand"
    family = [child.pid for child in psutil.Process(server.pid).children(recursive=True)]

    assert gpu_dash("stop", "--server").returncode == 0

    assert server.wait(timeout=5) is not None
    assert not any(is_running(pid) for pid in family)


def test_its_log_is_the_file_that_it_writes_and_its_death_is_told_with_the_cause(
    by_hand: tuple[subprocess.Popen[bytes], int, Path],
) -> None:
    server, _port, log = by_hand
    adopt("--pid", str(server.pid))
    wait_for(lambda: server_status()["state"] == "ready", "ready")
    with log.open("ab") as more:
        more.write(
            b"(Worker_TP1 pid=77) ERROR 11-30 10:00:00 [multiproc_executor.py:949] "
            b"torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
        )

    os.killpg(server.pid, signal.SIGKILL)
    server.wait()

    wait_for(lambda: server_status()["state"] == "failed", "the end to be noticed")
    assert "illegal memory access" in server_status()["detail"]


def test_what_cannot_be_adopted_is_said_in_one_line() -> None:
    port = free_port("127.0.0.1", "test")
    for arguments, says in (
        (("--port", str(port)), f"listens on port {port}"),
        (("--pid", str(os.getpid())), "listens on no port"),
        ((), "--pid N or --port N"),
        (("--port", "1", "--log", "a", "--journal", "b"), "give one of"),
    ):
        done = gpu_dash("adopt", *arguments)
        assert done.returncode in (2, 3)
        assert done.stderr.count("\n") == 1
        assert says in done.stderr
