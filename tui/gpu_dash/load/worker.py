"""The load worker: ``python -m gpu_dash.load.worker``, frames on stdin and stdout.

A process of its own, so that a busy agent or a painting screen never delays a token's stamp. It
knows nothing but what the frames tell it (the API key included: it stands in no argument and no
environment variable) and ends when its stdin closes.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Callable
from typing import BinaryIO

from gpu_dash.load.closed_loop import ClosedLoop
from gpu_dash.load.outbox import Outbox
from gpu_dash.load.protocol import (
    Cancel,
    Configure,
    FromWorker,
    SetLoad,
    ToWorker,
    Window,
    WorkerReady,
)
from gpu_dash.load.pulse import Pulse
from gpu_dash.load.route import make_transport, prepare
from gpu_dash.model.frames import encode_frame, read_frames

_LAG_PROBE_INTERVAL_S = 0.05
_LAG_PROBES = 5
"""Probes of one tick: four ticks a second."""


def main() -> None:
    """Run until stdin closes."""
    stdin, stdout = _take_stdio()
    with stdin, stdout, asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(stdin, stdout, raise_open_files_limit()))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop where it is installed: with one event a read it takes less than half
    of the processor time of asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def raise_open_files_limit() -> int:
    """Raise the limit of open files to the hard limit, and return it: each request in flight
    holds a connection. Where the kernel does not let it be raised, the old limit stands."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft
    return hard


def _take_stdio() -> tuple[BinaryIO, BinaryIO]:
    """The pipes for the frames. What a library prints goes to stderr, not between the frames."""
    stdin = os.fdopen(os.dup(0), "rb", buffering=0)
    stdout = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return stdin, stdout


async def _serve(stdin: BinaryIO, stdout: BinaryIO, open_files: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdin)
    # an asyncio pipe, because a blocking write would hold up the load while the agent is busy
    pipe, pipe_end = await loop.connect_write_pipe(_PipeEnd, stdout)

    def send(frame: FromWorker) -> None:
        pipe.write(encode_frame(frame))

    outbox = Outbox(send)
    pulse = Pulse()
    send(WorkerReady(open_files=open_files))
    async with asyncio.TaskGroup() as tasks:
        load = ClosedLoop(tasks, outbox, pulse, make_transport)
        ticker = tasks.create_task(_tick(load, pulse, send))
        async for frame in read_frames(reader, ToWorker):
            await _obey(load, frame)
        ticker.cancel()
        load.cancel(Cancel())
    await load.close()
    outbox.flush()
    pipe.close()
    await pipe_end.closed.wait()


class _PipeEnd(asyncio.Protocol):
    """Knows when all that was written has left, or nobody reads it any more."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    def connection_lost(self, error: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        self.closed.set()


async def _obey(load: ClosedLoop, frame: ToWorker) -> None:
    match frame:
        case Configure():
            await prepare(frame.target)
            load.configure(frame)
        case SetLoad():
            load.set_load(frame)
        case Window():
            load.set_window(frame)
        case Cancel():
            load.cancel(frame)


async def _tick(load: ClosedLoop, pulse: Pulse, send: Callable[[FromWorker], None]) -> None:
    """Report the live figures, and how late this loop's own timer was at worst."""
    was_idle = True
    while True:
        began_at, began_cpu_s = time.monotonic(), time.process_time()
        lag_s = await _worst_lag()
        now = time.monotonic()
        is_idle = load.is_idle
        if not (is_idle and was_idle):
            tick = pulse.tick(
                load.in_flight,
                at=now,
                interval_s=now - began_at,
                path=load.path,
                loop_lag_s=lag_s,
                cpu_s=time.process_time() - began_cpu_s,
            )
            send(tick)
        was_idle = is_idle


async def _worst_lag() -> float:
    """Watch a timer for one tick; the seconds by which it was late at worst."""
    worst_s = 0.0
    for _ in range(_LAG_PROBES):
        due = time.monotonic() + _LAG_PROBE_INTERVAL_S
        await asyncio.sleep(_LAG_PROBE_INTERVAL_S)
        worst_s = max(worst_s, time.monotonic() - due)
    return worst_s


if __name__ == "__main__":
    main()
