"""Which processes a test started, however far they have gone from it.

A daemon in a session of its own is nobody's child any more, but it keeps the environment with
which it was started. Each test has a private home whose path stands in ``GPU_DASH_TEST_HOME``,
so that path in a process's environment says whose it is.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil

HOME_VARIABLE = "GPU_DASH_TEST_HOME"
"""Environment variable that names the private home of the test that started a process."""

_START_EVENTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})


class StartCounter:
    """How many processes this interpreter has started, so that a test which started none need
    not search the host for any. Made once: an audit hook cannot be removed."""

    def __init__(self) -> None:
        self.count = 0
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _args: tuple[object, ...]) -> None:
        if event in _START_EVENTS:
            self.count += 1


def processes_of(home: Path) -> list[psutil.Process]:
    """The living processes that were started with this private home, or write into it."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if _is_marked(folder, home) or _writes_into(folder, home):
                found.append(psutil.Process(int(folder.name)))
        except (OSError, psutil.Error):
            continue  # ended meanwhile, or somebody else's
    return [process for process in found if is_alive(process) and process.pid != os.getpid()]


def _is_marked(process_folder: Path, home: Path) -> bool:
    mark = f"{HOME_VARIABLE}={home}".encode()
    return mark in (process_folder / "environ").read_bytes().split(b"\0")


def _writes_into(process_folder: Path, home: Path) -> bool:
    outputs = (os.readlink(process_folder / "fd" / number) for number in "12")
    return any(output.startswith(f"{home}/") for output in outputs)


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs: a zombie has ended and only waits for its parent to notice."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def wait_until_gone(processes: list[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Wait for processes to end by themselves; returns those that did not."""
    deadline = time.monotonic() + timeout_s
    left = [process for process in processes if is_alive(process)]
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [process for process in left if is_alive(process)]
    return left


def describe(process: psutil.Process) -> str:
    """Pid and command line, for a message."""
    try:
        return f"{process.pid}: {' '.join(process.cmdline())}"
    except psutil.Error:
        return f"{process.pid}: ended meanwhile"
