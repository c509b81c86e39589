"""The sampler: a child process that reads the cards and tells the agent, frame by frame.

``python -m gpu_dash.gpu.sampler --source auto|nvml|amd|sim|none [--sim-url URL] [--once]``

Driver calls may sleep where no signal reaches, crash, abort, or print on standard output. So
they have a process of their own: the frames leave through a copy of descriptor 1, which itself
points to standard error, and the process ends when its standard input closes, also in the
middle of a call.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

from gpu_dash.gpu.backend import GpuBackend, MovableSource, SourceAbsent
from gpu_dash.gpu.hardware_events import HardwareEvents
from gpu_dash.gpu.kernel_watch import Heard, KernelWatch
from gpu_dash.gpu.protocol import (
    EXIT_NO_SOURCE,
    EXIT_SOURCE_LOST,
    SIMULATED_CARDS,
    SOURCES,
    GpuEvent,
    SetSimulatedUrl,
)
from gpu_dash.gpu.sources import make_backend
from gpu_dash.gpu.sweeps import Sweeps
from gpu_dash.model.clock import SystemClock
from gpu_dash.model.errors import AgentError, GpuSourceError
from gpu_dash.model.events import GpuSourceChanged
from gpu_dash.model.frames import FrameDecoder, write_frame
from gpu_dash.model.gpu import GpuSourceState

INTERVAL_S = 0.1
EXIT_MISUSED = 2

Emit = Callable[[GpuEvent], None]


def main() -> None:
    """Run until the source is gone or standard input closes.

    It ends by ``os._exit``: a thread that hangs in the driver must not hold the process.
    """
    parser = argparse.ArgumentParser(prog="python -m gpu_dash.gpu.sampler")
    parser.add_argument("--source", choices=SOURCES, default="auto")
    parser.add_argument("--sim-url")
    parser.add_argument("--sim-cards", type=int, default=SIMULATED_CARDS)
    parser.add_argument("--once", action="store_true", help="one sweep, then end")
    arguments = parser.parse_args()
    emit = _frames_to(_take_stdout())
    try:
        code = _run(arguments, once=arguments.once, emit=emit)
    except BrokenPipeError:
        code = 0  # the agent is gone
    os._exit(code)


def _run(arguments: argparse.Namespace, *, once: bool, emit: Emit) -> int:
    """Open the source and sweep. Where nobody named a source, having none is no failure.

    Returns:
        The exit code.
    """
    source: str = arguments.source
    backend: GpuBackend | None = None
    try:
        events = HardwareEvents(emit)
        backend = make_backend(source, arguments.sim_url, arguments.sim_cards, events.xid)
        if not once:
            threading.Thread(target=_obey, args=(backend,), daemon=True).start()
        backend.open()
        heard = _listen(backend, events, once=once)
        _sweep(Sweeps(backend, emit, heard.live, heard.missing), once=once)
    except GpuSourceError as error:
        unwanted = isinstance(error, SourceAbsent) and source in ("auto", "none")
        emit(
            GpuSourceChanged(
                at=SystemClock().monotonic(),
                source="none" if unwanted else source if backend is None else backend.source,
                state=GpuSourceState.NONE if unwanted else GpuSourceState.FAILED,
                detail=str(error),
            )
        )
        return EXIT_NO_SOURCE if unwanted or backend is None else EXIT_SOURCE_LOST
    return 0


def _listen(backend: GpuBackend, events: HardwareEvents, *, once: bool) -> Heard:
    """Listen to the kernel too, where there are real cards.

    Returns:
        All sources that are live, and those that are not.
    """
    if backend.source == "sim":
        return Heard(())
    events.know(backend.gpus)
    watch = KernelWatch(events.kernel)
    kernel = watch.look() if once else watch.start()
    return Heard(
        (*backend.event_sources, *kernel.live), (*backend.event_sources_missing, *kernel.missing)
    )


def _sweep(sweeps: Sweeps, *, once: bool) -> None:
    due = time.monotonic()
    while True:
        sweeps.sweep()
        if once:
            return
        due += INTERVAL_S
        now = time.monotonic()
        if due < now:
            due = now  # what was missed is not made up for
        time.sleep(due - now)


def _obey(backend: GpuBackend) -> None:
    """Take the agent's orders, and end with it."""
    decoder: FrameDecoder[SetSimulatedUrl] = FrameDecoder(SetSimulatedUrl)
    try:
        while data := os.read(sys.stdin.fileno(), 65536):
            for order in decoder.feed(data):
                if isinstance(backend, MovableSource):
                    backend.set_url(order.url)
    except AgentError as error:
        sys.stderr.write(f"sampler: standard input: {error}\n")
        sys.stderr.flush()
        os._exit(EXIT_MISUSED)
    os._exit(0)


def _take_stdout() -> BinaryIO:
    """Keep standard output for the frames, and send what libraries print to standard error."""
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return frames


def _frames_to(stream: BinaryIO) -> Emit:
    lock = threading.Lock()

    def emit(event: GpuEvent) -> None:
        with lock:
            write_frame(stream, event)

    return emit


if __name__ == "__main__":
    main()
