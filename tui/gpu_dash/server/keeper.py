"""The keeper: a tiny parent that starts the server, waits, and writes its exit status down.

``python -m gpu_dash.server.keeper STATUS LOG``, and on stdin what to start, as JSON:
``{"argv": […], "environment": {…}, "folder": "…"}``. So the server's environment, which may hold
keys and may bend how Python itself starts, is the server's alone.

The agent may be killed; its server must not be, and its exit status must not be lost. So the
server's parent is this process, which does nothing that could fail: it runs in a session of its
own, gives the server another one, and keeps the status file for whichever agent comes next. It is
the reaper of the server's orphans too, so that none of them stays a zombie. It ends when the last
process below it has ended.

The status file is JSON, ``{"keeper": …, "server": …, "error": …, "exit_code": …}``, a process as
``{"pid", "start_ticks", "boot_id"}``. It is padded to a fixed length and written in place: its room
is taken before the server starts, so that a full disk never costs the server's identity.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
"""``prctl(2)``."""
STATUS_BYTES = 1024


def main(arguments: list[str]) -> int:
    """Start the server and wait for the last of its processes."""
    status_path, log_path = arguments
    wanted = json.load(sys.stdin)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    status: dict[str, Any] = {"keeper": _identity(os.getpid())}
    try:
        status_file = os.open(status_path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _write(status_file, status)
    except OSError as error:
        sys.stderr.write(f"{status_path}: {error.strerror}\n")
        return 1
    log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        server = subprocess.Popen(
            wanted["argv"],
            env=wanted["environment"],
            cwd=wanted["folder"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_default_signals,
        )
    except OSError as error:
        status["error"] = f"{error.filename or wanted['argv'][0]}: {error.strerror}"
        _write(status_file, status)
        return 1
    finally:
        os.close(log)
    status["server"] = _identity(server.pid)
    _write(status_file, status)
    while True:
        try:
            pid, wait_status = os.wait()
        except ChildProcessError:
            return 0
        if pid == server.pid:
            status["exit_code"] = os.waitstatus_to_exitcode(wait_status)
            _write(status_file, status)


def _default_signals() -> None:
    """An ignored signal is inherited through exec: the server gets the defaults back."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _identity(pid: int) -> dict[str, Any]:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        start_ticks = int(stat.read().rpartition(")")[2].split()[19])
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
        return {"pid": pid, "start_ticks": start_ticks, "boot_id": boot.read().strip()}


def _write(status_file: int, status: dict[str, Any]) -> None:
    """Write the status over the one before.

    Raises:
        OSError: at the first time, the disk is full.
    """
    os.pwrite(status_file, json.dumps(status).encode().ljust(STATUS_BYTES), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
