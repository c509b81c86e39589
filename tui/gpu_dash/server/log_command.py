"""A log that a command prints: ``journalctl --follow``, ``docker logs --follow``.

Both are asked for the time of each line. It does not go into our file, but tells where to go on
when an agent was killed: the whole log is not printed again.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu_dash.model.errors import ServerError, UsageError

CHUNK_BYTES = 64 * 1024
LINE_BYTES = 1024 * 1024
"""A line that is longer is written before it has ended."""
END_S = 2.0
LAST_WORDS_S = 1.0
"""How long the command may take to end by itself once the server has ended: the last lines of a
container are still on their way."""
_SINCE = "--since="
_STAMP = re.compile(rb"(?:(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))|(\d+\.\d+) \S+ [^\s:]+:) ?")
"""What docker and podman (``--timestamps``) and journalctl (``--output=short-unix``) write in
front of a line."""


def journal_command(unit: str, since_s: float) -> tuple[str, ...]:
    """Print the journal of a unit from a moment on, and what follows.

    Args:
        unit: the name of the systemd unit.
        since_s: seconds since the epoch.
    """
    return (
        *("journalctl", "--follow", "--lines=all", "--output=short-unix"),
        *(f"{_SINCE}@{since_s:.6f}", f"--unit={unit}"),
    )


def container_command(name: str, since_s: float = 0.0, program: str = "") -> tuple[str, ...]:
    """Print the output of a container from a moment on, and what follows.

    Args:
        name: the container.
        since_s: seconds since the epoch.
        program: docker or podman; the one that is there if left out.

    Raises:
        UsageError: neither docker nor podman is there.
    """
    program = program or next(filter(shutil.which, ("docker", "podman")), "")
    if not program:
        raise UsageError("--container: neither docker nor podman is on the PATH")
    return (program, "logs", "--follow", "--timestamps", f"{_SINCE}{since_s:.6f}", name)


class LogCommand:
    """Runs such a command and appends the lines that it prints to a file.

    Its output goes through a pipe of ours: should we be killed, it ends with its next line. How
    far it has come is kept beside the file.

    Args:
        argv: of :func:`journal_command` or :func:`container_command`.
        path: the file.
        environment: of the command; ours if left out.
    """

    def __init__(
        self, argv: Sequence[str], path: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._argv = tuple(argv)
        self._path = path
        self._position = _Position(path.with_name(f"{path.name}.position"))
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._copying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin, or go on where an earlier agent's command was.

        Raises:
            ServerError: the command cannot be started.
        """
        self._position.load()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *_going_on(self._argv, self._position.stamp),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=None if self._environment is None else dict(self._environment),
                start_new_session=True,
            )
        except OSError as error:
            raise ServerError(f"{self._argv[0]}: {error.strerror}") from error
        self._copying = asyncio.create_task(self._copy(self._process))

    async def finish(self) -> None:
        """The server has ended: wait for the last lines, then end the command."""
        if self._copying is not None:
            await asyncio.wait((self._copying,), timeout=LAST_WORDS_S)
        await self.stop()

    async def stop(self) -> None:
        """End the command; what it has printed is in the file."""
        if self._process is None or self._copying is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._process.wait()
                    await self._copying
                break
        self._process = None

    async def _copy(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        rest = b""
        with self._path.open("ab", buffering=0) as file:
            while data := await process.stdout.read(CHUNK_BYTES):
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > LINE_BYTES:
                    lines, rest = [*lines, rest], b""
                file.write(b"".join(map(self._position.taken, lines)))
                self._position.save()
            if rest:
                file.write(self._position.taken(rest))


class _Position:
    """How far a command has come: the newest stamp, and how many lines had it."""

    def __init__(self, path: Path) -> None:
        self.stamp = b""
        self._path = path
        self._count = 0
        self._to_skip = 0
        """Lines of that stamp that the file has already: the moment itself is printed again."""

    def load(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            stamp, count = self._path.read_bytes().split()
            self._count = self._to_skip = int(count)
            self.stamp = stamp

    def save(self) -> None:
        # Without room for it the log may be printed twice after a crash of ours; no more.
        with contextlib.suppress(OSError):
            self._path.write_bytes(b"%s %d\n" % (self.stamp, self._count))

    def taken(self, line: bytes) -> bytes:
        """A line as it goes into the file; nothing if it is there already."""
        match = _STAMP.match(line)
        if match is None:
            return line + b"\n"
        stamp = match[1] or match[2]
        if stamp != self.stamp:
            self.stamp, self._count, self._to_skip = stamp, 0, 0
        if self._to_skip:
            self._to_skip -= 1
            return b""
        self._count += 1
        return line[match.end() :] + b"\n"


def _going_on(argv: Sequence[str], stamp: bytes) -> list[str]:
    """The command from that moment on."""
    if not stamp:
        return list(argv)
    at = "@" if argv[0] == "journalctl" else ""
    since = f"{_SINCE}{at}{stamp.decode()}"
    return [since if word.startswith(_SINCE) else word for word in argv]
