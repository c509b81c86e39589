"""The worker process as the agent holds it: started, fed, listened to, ended."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable

from gpu_dash.load.protocol import FromWorker, ToWorker
from gpu_dash.model.errors import AgentError
from gpu_dash.model.frames import encode_frame, read_frames
from gpu_dash.model.text import strip_controls

_COMMAND = (sys.executable, "-P", "-m", "gpu_dash.load.worker")
"""``-P``: the person's working folder is no place to import from."""
_END_TIMEOUT_S = 3.0
_READ_BYTES = 65536


class WorkerChild:
    """One load worker.

    Frames given before the process is up wait for it, so a load can be asked for at once.

    Args:
        on_frame: told of each frame that it sends.
        on_lost: told in words why it ended, when that was not asked for.
    """

    def __init__(
        self, on_frame: Callable[[FromWorker], None], on_lost: Callable[[str], None]
    ) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._waiting: list[ToWorker] = []
        self._process: Process | None = None
        self._last_words = ""
        self._is_closing = False
        self._is_to_end = False
        self._task = asyncio.create_task(self._run(), name="load worker")

    def send(self, frame: ToWorker) -> None:
        """Put a frame on its way."""
        if self._process is None:
            self._waiting.append(frame)
        else:
            self._write(self._process, frame)

    async def close(self) -> None:
        """End the worker: it stops by itself when its stdin closes, or is killed."""
        self._is_closing = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        _, still_running = await asyncio.wait({self._task}, timeout=_END_TIMEOUT_S)
        if still_running:
            self.kill()
            await self._task

    def kill(self) -> None:
        """End the worker at once, whatever it does."""
        self._is_to_end = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _run(self) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *_COMMAND, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
        except OSError as error:
            self._tell_lost(f"the load worker cannot be started: {error}")
            return
        self._process = process
        for frame in self._waiting:
            self._write(process, frame)
        self._waiting.clear()
        if self._is_to_end:
            process.kill()
        if self._is_closing and process.stdin is not None:
            process.stdin.close()
        told = await asyncio.gather(self._read_frames(process), self._read_words(process))
        code = await process.wait()
        self._tell_lost(
            told[0]
            or f"the load worker ended with {_name_of(code)}"
            + (f": {self._last_words}" if self._last_words else "")
        )

    def _tell_lost(self, why: str) -> None:
        if not self._is_closing:
            self._on_lost(why)

    @staticmethod
    def _write(process: Process, frame: ToWorker) -> None:
        if process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(encode_frame(frame))

    async def _read_frames(self, process: Process) -> str:
        """Pass the worker's frames on until it ends; what is wrong with them, if anything is."""
        assert process.stdout is not None
        try:
            async for frame in read_frames(process.stdout, FromWorker):
                self._on_frame(frame)
        except AgentError as error:
            self.kill()
            return f"the load worker was ended: {error}"
        return ""

    async def _read_words(self, process: Process) -> None:
        """Read its stderr to the end, so that it never blocks there, and keep the last line."""
        assert process.stderr is not None
        tail = b""
        while data := await process.stderr.read(_READ_BYTES):
            tail = (tail + data)[-_READ_BYTES:]
            lines = tail.decode(errors="replace").split("\n")
            self._last_words = next(
                (strip_controls(line).strip() for line in reversed(lines) if line.strip()), ""
            )


def _name_of(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
