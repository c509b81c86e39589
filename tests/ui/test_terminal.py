"""However the dashboard ends, the terminal is as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

TIMEOUT_S = 20.0
ENTER = b"\x1b[?1049h"
RESTORED = {
    "the alternate screen": b"\x1b[?1049l",
    "the hidden cursor": b"\x1b[?25h",
    "mouse reports": b"\x1b[?1003l",
    "bracketed paste": b"\x1b[?2004l",
}
PROGRAM = """
import sys
from gpu_dash.ui.run import run_dashboard
from gpu_dash.ui.scripted_feed import ScriptedFeed
from tests.ui.scenes import thermal_and_cap_scene

class Feed(ScriptedFeed):
    secret = "hf_secret"
    frames = 0

    def advance(self):
        token = self.secret
        self.frames += 1
        if sys.argv[1] == "fault" and self.frames > 2:
            raise RuntimeError("the feed broke")

left = run_dashboard(Feed(*thermal_and_cap_scene()), frames_per_s=20.0)
print(f"<{left.by} {left.signal} {left.fault}>")
"""
PARENT = """
import subprocess, sys
sys.exit(subprocess.call([sys.executable, "-c", *sys.argv[1:]]))
"""
SHELL = """
import fcntl, os, signal, subprocess, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
job = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], process_group=0)
try:
    while True:
        os.tcsetpgrp(0, job.pid)
        os.killpg(job.pid, signal.SIGCONT)
        _, status = os.waitpid(job.pid, os.WUNTRACED)
        os.tcsetpgrp(0, os.getpgrp())
        if not os.WIFSTOPPED(status):
            break
        print("<job stopped>", flush=True)
        while input() == "bg":
            os.killpg(job.pid, signal.SIGCONT)
            os.waitpid(job.pid, os.WUNTRACED)
            print("<job stopped again>", flush=True)
finally:
    job.kill()
"""
"""What a shell does with its jobs: it waits until one is stopped; ``bg``, and an empty line for
``fg``."""


class Terminal:
    """The dashboard on a pseudo terminal, seen from the terminal's side."""

    def __init__(self, fd: int, slave: int, process: subprocess.Popen[bytes]) -> None:
        self.fd = fd
        self.process = process
        self.output = b""
        self._slave = slave
        self.modes = termios.tcgetattr(slave)

    def wait_for(self, words: bytes) -> None:
        """Read until these bytes have come."""
        deadline = time.monotonic() + TIMEOUT_S
        while words not in self.output:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.fd], [], [], max(0.0, left))
            assert ready, f"{words!r} did not come: {self.output[-2000:]!r}"
            self.output += os.read(self.fd, 65536)

    def press(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def resize(self, width: int, height: int) -> None:
        size = struct.pack("HHHH", height, width, 0, 0)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, size)
        self.process.send_signal(signal.SIGWINCH)

    def hang_up(self) -> None:
        """Take the terminal away, as a dropped connection does."""
        os.close(self.fd)
        self.fd = -1

    def assert_as_before(self) -> None:
        after_entering = self.output[self.output.index(ENTER) :]
        for what, sequence in RESTORED.items():
            assert sequence in after_entering, f"{what} stayed"
        assert termios.tcgetattr(self._slave) == self.modes, "the line modes are not restored"


@contextmanager
def dashboard_on_a_terminal(how: str = "well", *under: str) -> Iterator[Terminal]:
    """The dashboard, started by the programs ``under``, the first of which leads the session."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", *under, PROGRAM, how],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    terminal = Terminal(master, slave, process)
    try:
        yield terminal
    finally:
        process.kill()
        process.wait()
        if terminal.fd >= 0:
            os.close(master)
        os.close(slave)


@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGTERM, b"<signal 15 None>"), (signal.SIGHUP, b"<signal 1 None>")]
)
def test_a_signal(number: signal.Signals, said: bytes) -> None:
    with dashboard_on_a_terminal() as terminal:
        terminal.wait_for(b"THERMAL")
        terminal.process.send_signal(number)
        terminal.wait_for(said)
        terminal.assert_as_before()


@pytest.mark.parametrize("keys", [b"q", b"\x11", b"\x03q"], ids=["q", "ctrl+q", "ctrl+c is not q"])
def test_a_key(keys: bytes) -> None:
    with dashboard_on_a_terminal() as terminal:
        terminal.wait_for(b"THERMAL")
        terminal.press(keys)
        terminal.wait_for(b"<quit None None>")
        terminal.assert_as_before()


def test_a_fault_is_one_line_without_the_values_of_variables() -> None:
    with dashboard_on_a_terminal("fault") as terminal:
        terminal.wait_for(b"<fault None the feed broke>")
        terminal.assert_as_before()

    assert b"Traceback" not in terminal.output
    assert b"hf_secret" not in terminal.output


def test_a_resize_is_painted_at_once() -> None:
    with dashboard_on_a_terminal() as terminal:
        terminal.wait_for(b"THERMAL")
        terminal.resize(20, 5)
        terminal.wait_for(b"60x16 needed")
        terminal.output = terminal.output[: terminal.output.index(ENTER) + len(ENTER)]
        terminal.resize(80, 24)
        terminal.wait_for(b"THERMAL")
        terminal.press(b"q")
        terminal.wait_for(b"<quit None None>")


@pytest.mark.parametrize("between", [(), (PARENT,)], ids=["alone", "under make"])
def test_ctrl_z_gives_the_terminal_to_the_shell_for_a_while(between: tuple[str, ...]) -> None:
    with dashboard_on_a_terminal("well", SHELL, *between) as terminal:
        terminal.wait_for(b"THERMAL")
        terminal.press(b"\x1a")
        terminal.wait_for(b"<job stopped>")
        terminal.assert_as_before()
        terminal.output = b""

        terminal.press(b"\n")
        terminal.wait_for(b"THERMAL")
        terminal.press(b"q")
        terminal.wait_for(b"<quit None None>")
        terminal.assert_as_before()


def test_a_job_in_the_background_is_stopped_again() -> None:
    with dashboard_on_a_terminal("well", SHELL, PARENT) as terminal:
        terminal.wait_for(b"THERMAL")
        terminal.press(b"\x1a")
        terminal.wait_for(b"<job stopped>")
        terminal.press(b"bg\n")
        terminal.wait_for(b"<job stopped again>")
        terminal.output = b""

        terminal.press(b"\n")
        terminal.wait_for(b"THERMAL")
        terminal.press(b"q")
        terminal.wait_for(b"<quit None None>")


def test_a_stopped_job_ends_when_the_terminal_is_gone() -> None:
    with dashboard_on_a_terminal("well", SHELL, PARENT) as terminal:
        terminal.wait_for(b"THERMAL")
        terminal.press(b"\x1a")
        terminal.wait_for(b"<job stopped>")
        job = psutil.Process(terminal.process.pid).children(recursive=True)
        assert len(job) == 2
        terminal.hang_up()

        _, left = psutil.wait_procs(job, timeout=TIMEOUT_S)

        assert not left


def test_ctrl_z_is_refused_where_no_shell_could_bring_it_back() -> None:
    with dashboard_on_a_terminal() as terminal:
        terminal.wait_for(b"THERMAL")
        terminal.press(b"\x1a")
        terminal.wait_for(b"no shell below")
        terminal.press(b"q")
        terminal.wait_for(b"<quit None None>")


def test_it_ends_when_the_terminal_is_gone() -> None:
    with dashboard_on_a_terminal() as terminal:
        terminal.wait_for(b"THERMAL")
        terminal.hang_up()
        terminal.process.send_signal(signal.SIGHUP)

        terminal.process.wait(TIMEOUT_S)
