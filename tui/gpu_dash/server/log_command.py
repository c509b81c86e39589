"""A log that a command prints: ``journalctl --follow``, ``docker logs --follow``."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from gpu_dash.model.errors import ServerError, UsageError

CHUNK_BYTES = 64 * 1024
END_S = 2.0


def journal_command(unit: str) -> tuple[str, ...]:
    """Print the whole journal of a unit, and what follows."""
    return ("journalctl", "--follow", "--lines=all", "--output=cat", f"--unit={unit}")


def container_command(name: str) -> tuple[str, ...]:
    """Print the whole output of a container, and what follows.

    Raises:
        UsageError: neither docker nor podman is there.
    """
    for program in ("docker", "podman"):
        if shutil.which(program):
            return (program, "logs", "--follow", name)
    raise UsageError("--container: neither docker nor podman is on the PATH")


class LogCommand:
    """Runs such a command and appends what it prints to a file.

    Its output goes through a pipe of ours: should we be killed, it ends with its next line.
    """

    def __init__(self, argv: Sequence[str], path: Path) -> None:
        self._argv = tuple(argv)
        self._path = path
        self._process: asyncio.subprocess.Process | None = None
        self._copying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin.

        Raises:
            ServerError: the command cannot be started.
        """
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ServerError(f"{self._argv[0]}: {error.strerror}") from error
        self._copying = asyncio.create_task(self._copy(self._process))

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
        with self._path.open("ab", buffering=0) as file:
            while data := await process.stdout.read(CHUNK_BYTES):
                file.write(data)
