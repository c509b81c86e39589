"""A program in a pseudo-terminal of its own, with the screen that a person would see."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pyte

TIMEOUT_S = 30.0


class Terminal:
    """Runs ``gpu-dash ARGUMENTS`` in a pseudo-terminal.

    Args:
        arguments: the command; its first word ``gpu-dash`` is this project's.
        size: columns and rows.
    """

    def __init__(self, *arguments: str, size: tuple[int, int] = (100, 30)) -> None:
        assert arguments[0] == "gpu-dash"
        self.output = b""
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._status: int | None = None
        # The other end stays open here, so that the terminal outlives the program and its
        # settings can be looked at.
        self._fd, self._far = pty.openpty()
        self._set_size(*size)
        self.pid = os.fork()
        if self.pid == 0:
            self._become(arguments[1:])

    def _become(self, arguments: tuple[str, ...]) -> None:
        os.setsid()
        fcntl.ioctl(self._far, termios.TIOCSCTTY, 0)
        for fd in (0, 1, 2):
            os.dup2(self._far, fd)
        os.closerange(3, 256)
        environment = {**os.environ, "TERM": "xterm-256color"}
        command = [sys.executable, "-m", "gpu_dash", *arguments]
        os.execve(sys.executable, command, environment)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, 9)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        for fd in (self._fd, self._far):
            with contextlib.suppress(OSError):
                os.close(fd)

    # -- what a person does --------------------------------------------------------------------

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._fd, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def give_to_a_shell(self) -> None:
        """What a shell does while the program is stopped: its own modes, its own text."""
        modes = termios.tcgetattr(self._far)
        modes[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(self._far, termios.TCSANOW, modes)
        self._stream.feed(b"\x1b[?1049l\x1b[2J\x1b[H$ ")

    def hang_up(self) -> None:
        """Close the window: both ends go away."""
        os.close(self._far)
        os.close(self._fd)

    # -- what a person sees --------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The rows of the screen."""
        return "\n".join(self._screen.display)

    def read(self) -> None:
        """Take what has been written, waiting a moment for it."""
        with contextlib.suppress(OSError, ValueError):
            while select.select([self._fd], [], [], 0.05)[0]:
                data = os.read(self._fd, 65536)
                if not data:
                    return
                self.output += data
                self._stream.feed(data)

    def wait_for_text(self, words: str) -> None:
        """Wait until the screen shows some words."""
        self._until(lambda: words in self.text, f"{words!r} on the screen")

    def wait_for_end(self) -> int:
        """Wait for the end of the program; the exit code, negative for a signal."""
        self._until(self._has_ended, "the end of the program")
        assert self._status is not None
        return os.waitstatus_to_exitcode(self._status)

    def after_the_screen(self) -> str:
        """What was printed after the full screen was left."""
        return self.output.rpartition(b"\x1b[?1049l")[2].decode(errors="replace")

    def attributes(self) -> list[Any]:
        """The terminal's settings, as :func:`termios.tcgetattr` gives them."""
        return termios.tcgetattr(self._far)

    # -- inner ---------------------------------------------------------------------------------

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _has_ended(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = status
        return self._status is not None

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            self.read()
            if condition():
                self.read()
                return
            assert time.monotonic() < deadline, f"waited for {what}; the screen:\n{self.text}"
