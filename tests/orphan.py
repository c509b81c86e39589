"""A worker that outlives its server, on real processes that call themselves as vLLM's do."""

from __future__ import annotations

import subprocess
import sys

from gpu_dash.server.orphans import find_orphans
from tests.integration.commands import wait_for

NAMED = """
import ctypes, sys, time
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
print("named", flush=True)
time.sleep(60)
"""
SERVER = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], "VLLM::Worker"],
                         stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


def start_family() -> tuple[subprocess.Popen[str], int]:
    """A server in a session of its own, and the pid of its worker."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, NAMED],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert server.stdout is not None
    return server, int(server.stdout.readline())


def leave_an_orphan() -> int:
    """A worker whose server was killed; it ends by itself after a minute."""
    server, pid = start_family()
    assert server.stdout is not None
    server.kill()
    server.wait()
    server.stdout.close()
    wait_for(lambda: pid in [each.process.pid for each in find_orphans()], "the orphan")
    return pid
