"""Processes that outlived their server, on real processes that call themselves as vLLM's do."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from gpu_dash.model.errors import PreflightError
from gpu_dash.server.orphans import end_orphans, find_orphans
from gpu_dash.server.preflight import check_orphans
from tests.integration.commands import gpu_dash, is_running, wait_for
from tests.orphan import start_family


@pytest.fixture
def worker() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server and its worker, in a session of their own."""
    server, pid = start_family()
    yield server, pid
    for each in (server.pid, pid):
        if is_running(each):
            os.kill(each, signal.SIGKILL)
    server.wait()
    assert server.stdout is not None
    server.stdout.close()


def pids() -> list[int]:
    return [orphan.process.pid for orphan in find_orphans()]


def test_a_worker_with_its_server_is_none(worker: tuple[subprocess.Popen[str], int]) -> None:
    assert worker[1] not in pids()


@pytest.fixture
def orphaned(
    worker: tuple[subprocess.Popen[str], int],
) -> tuple[subprocess.Popen[str], int]:
    """A server that was killed, and its worker, which lives."""
    server, pid = worker
    server.kill()
    server.wait()
    wait_for(lambda: pid in pids(), "the orphan")
    return worker


def test_a_worker_whose_server_was_killed_is_found_and_ended(
    orphaned: tuple[subprocess.Popen[str], int],
) -> None:
    server, pid = orphaned
    began = time.monotonic()
    (orphan,) = [orphan for orphan in find_orphans({pid: {1: 2**30}}) if orphan.process.pid == pid]
    with pytest.raises(PreflightError, match=rf"VLLM::Worker \(pid {pid}.*orphans --end"):
        check_orphans("profile 'p'")
    assert time.monotonic() - began < 2
    assert orphan.session == server.pid
    assert "1.0 GiB on GPU 1" in str(orphan)
    assert f"pid {pid}" in gpu_dash("status").stdout
    assert end_orphans([orphan]) == []
    assert not is_running(pid)


def test_a_person_is_asked_before_an_orphan_is_ended(
    orphaned: tuple[subprocess.Popen[str], int],
) -> None:
    server, pid = orphaned
    assert f"session {server.pid}: VLLM::Worker (pid {pid}" in gpu_dash("orphans").stdout
    gpu_dash("orphans", "--end")  # nobody answers
    assert is_running(pid)
    done = gpu_dash("orphans", "--end", "--yes")
    assert done.returncode == 0, done.stderr
    assert not is_running(pid)
