"""A sampler child as the agent sees it: its pipes, its frames and how it ended."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence

from gpu_dash.gpu.protocol import SIMULATED_CARDS, GpuEvent, SetSimulatedUrl
from gpu_dash.model.frames import FrameDecoder, encode_frame
from gpu_dash.model.text import one_line

GRACE_S = 0.05
"""Frames that lie in the pipe while this process itself was held up are no silence."""
_LAST_WORDS_BYTES = 4096

_CRASH = {
    signal.SIGSEGV: ": most likely a driver call crashed",
    signal.SIGBUS: ": most likely a driver call crashed",
    signal.SIGABRT: ": the driver's library gave up",
    signal.SIGKILL: ": something killed it; `dmesg` says if memory ran out",
}


def sampler_command(
    source: str, sim_url: str | None, sim_cards: int = SIMULATED_CARDS, *, once: bool = False
) -> list[str]:
    """The argument list of a sampler; ``-P`` keeps the working directory off its import path."""
    command = [sys.executable, "-P", "-m", "gpu_dash.gpu.sampler", "--source", source]
    command += ["--sim-cards", str(sim_cards)]
    if sim_url is not None:
        command += ["--sim-url", sim_url]
    if once:
        command.append("--once")
    return command


def describe_end(returncode: int, last_words: bytes) -> str:
    """How a sampler ended, in words.

    Args:
        returncode: as :mod:`subprocess` gives it: negative for a signal.
        last_words: the end of its standard error.
    """
    if returncode < 0:
        try:
            number = signal.Signals(-returncode)
        except ValueError:
            return f"the sampler ended by signal {-returncode}"
        return f"the sampler ended by signal {-returncode} ({number.name}){_CRASH.get(number, '')}"
    lines = last_words.decode(errors="replace").strip().splitlines()
    words = f": {one_line(lines[-1])[:200]}" if lines else ""
    return f"the sampler ended with exit code {returncode}{words}"


class SamplerChild:
    """A running sampler.

    Its waits are blocks of :func:`asyncio.timeout`: ``asyncio.wait_for`` loses a cancellation that
    comes together with what it waits for (before Python 3.12), and here something comes all the
    time.

    Args:
        process: started with pipes on all three standard streams.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._orders = process.stdin
        self._frames = process.stdout
        self._decoder: FrameDecoder[GpuEvent] = FrameDecoder(GpuEvent)
        self._last_words = b""
        self._listening = asyncio.create_task(self._listen(process.stderr))

    @classmethod
    async def start(
        cls, source: str, sim_url: str | None, sim_cards: int = SIMULATED_CARDS
    ) -> SamplerChild:
        """Start one in a session of its own: a Ctrl+C in the terminal is not for it.

        Raises:
            OSError: the process cannot be started.
        """
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *sampler_command(source, sim_url, sim_cards),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        return cls(process)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """As :mod:`subprocess` gives it; ``None`` while it runs."""
        return self._process.returncode

    async def events(self, within_s: float) -> Sequence[GpuEvent] | None:
        """The next events; ``None`` when there will be no more.

        Raises:
            TimeoutError: there were none in that time.
            AgentError: what it writes are no frames.
        """
        try:
            async with asyncio.timeout(within_s):
                data = await self._frames.read(65536)
        except TimeoutError:
            async with asyncio.timeout(GRACE_S):
                data = await self._frames.read(65536)
        return list(self._decoder.feed(data)) if data else None

    def send(self, order: SetSimulatedUrl) -> None:
        """Give it an order; one that has ended does not get it."""
        if not self._orders.is_closing():
            self._orders.write(encode_frame(order))

    def ask_to_end(self) -> None:
        """Close its standard input, on which it ends by itself."""
        self._orders.close()

    def kill(self) -> None:
        """SIGKILL. A process that sleeps inside the driver ends only when the driver lets it."""
        if self._process.returncode is None:
            self._process.kill()

    async def gone(self, within_s: float | None = None) -> bool:
        """Wait for its end, and empty its pipes.

        Returns:
            False if it has not ended in that time.
        """
        try:
            async with asyncio.timeout(within_s):
                await self._process.wait()
        except TimeoutError:
            return False
        while await self._frames.read(65536):
            pass
        await self._listening
        self._orders.close()
        return True

    def abandon(self) -> None:
        """Look at it no longer."""
        self._listening.cancel()

    def describe_end(self) -> str:
        """How it ended, in words."""
        return describe_end(self._process.returncode or 0, self._last_words)

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while data := await stream.read(4096):
            self._last_words = (self._last_words + data)[-_LAST_WORDS_BYTES:]
