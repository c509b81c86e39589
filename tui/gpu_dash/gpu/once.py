"""One reading of every card, without an agent: for ``gpu-dash gpus``."""

from __future__ import annotations

import subprocess
from typing import IO

from msgspec.structs import replace

from gpu_dash.gpu.child import describe_end, sampler_command
from gpu_dash.gpu.protocol import EXIT_NO_SOURCE, EXIT_SOURCE_LOST, GpuEvent
from gpu_dash.model.errors import AgentError, GpuSourceError
from gpu_dash.model.events import GpuReadFailed, GpuSamples, GpuSourceChanged
from gpu_dash.model.frames import FrameDecoder
from gpu_dash.model.gpu import GpuSample, GpuSourceState

KILL_S = 1.0


def read_once(
    source: str, timeout_s: float = 30.0, sim_url: str | None = None
) -> tuple[GpuSourceChanged, tuple[GpuSample, ...]]:
    """Read every card once, in a process of its own.

    Args:
        source: ``auto``, ``nvml``, ``amd``, ``sim`` or ``none``.
        timeout_s: opening a driver without persistence mode takes seconds a card.
        sim_url: where the simulated cards are, for the source ``sim``.

    Returns:
        The source with its cards, and the samples of those that answered; ``detail`` names the
        ones that did not.

    Raises:
        GpuSourceError: there is no usable source, or it does not answer; says what to do.
    """
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        sampler_command(source, sim_url, once=True),
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    )
    try:
        frames, last_words = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise GpuSourceError(
            f"GPU source {source}: the driver did not answer within {timeout_s:g} s; "
            "see `dmesg | grep NVRM`"
        ) from None
    except BaseException:
        _kill(process)
        raise
    events = _decode(frames)
    changes = [event for event in events if isinstance(event, GpuSourceChanged)]
    if process.returncode not in (0, EXIT_NO_SOURCE, EXIT_SOURCE_LOST) or not changes:
        raise GpuSourceError(f"GPU source {source}: {describe_end(process.returncode, last_words)}")
    if changes[-1].state is not GpuSourceState.LIVE:
        raise GpuSourceError(f"GPU source {source}: {changes[-1].detail}")
    failures = [event for event in events if isinstance(event, GpuReadFailed)]
    detail = "; ".join(f"GPU {failed.gpu}: {failed.call}: {failed.error}" for failed in failures)
    samples = [event.samples for event in events if isinstance(event, GpuSamples)]
    return replace(changes[-1], detail=detail), samples[-1] if samples else ()


def _decode(frames: bytes) -> list[GpuEvent]:
    decoder: FrameDecoder[GpuEvent] = FrameDecoder(GpuEvent)
    try:
        return list(decoder.feed(frames))
    except AgentError as error:
        raise GpuSourceError(f"the sampler's output: {error}") from error


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it, but do not wait for one that sleeps inside the driver."""
    process.kill()
    try:
        process.communicate(timeout=KILL_S)
    except subprocess.TimeoutExpired:
        for stream in (process.stdout, process.stderr):
            _close(stream)


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        stream.close()
