"""One reading of every card, without an agent: for ``gpu-dash gpus``."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from gpu_dash.gpu.child import describe_end, sampler_command
from gpu_dash.gpu.protocol import EXIT_NO_SOURCE, EXIT_SOURCE_LOST, GpuEvent
from gpu_dash.model.errors import AgentError, GpuSourceError
from gpu_dash.model.events import GpuProcesses, GpuReadFailed, GpuSamples, GpuSourceChanged
from gpu_dash.model.frames import FrameDecoder
from gpu_dash.model.gpu import GpuInfo, GpuSample, GpuSourceState

KILL_S = 1.0


@dataclass(frozen=True)
class OneReading:
    """What the cards said once."""

    source: GpuSourceChanged
    samples: tuple[GpuSample, ...]
    """Of those that answered."""
    failures: Mapping[int, str]
    """What failed, by card."""
    processes: GpuProcesses | None
    """``None``: the source does not tell."""

    @property
    def cards(self) -> tuple[GpuInfo, ...]:
        """All cards, those that did not answer too."""
        known = {info.gpu: info for info in self.source.gpus}
        for sample in self.samples:
            known.setdefault(sample.gpu, GpuInfo(gpu=sample.gpu, name=""))
        return tuple(known[gpu] for gpu in sorted(known))


def read_once(source: str, timeout_s: float = 30.0, sim_url: str | None = None) -> OneReading:
    """Read every card once, in a process of its own.

    Args:
        source: ``auto``, ``nvml``, ``amd``, ``sim`` or ``none``.
        timeout_s: opening a driver without persistence mode takes seconds a card.
        sim_url: where the simulated cards are, for the source ``sim``.

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
            "see `dmesg | grep -E 'NVRM|amdgpu'`"
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
    failures: dict[int, str] = {}
    for event in events:
        if isinstance(event, GpuReadFailed):
            failures.setdefault(event.gpu, f"{event.call}: {event.error}")
    samples = [event.samples for event in events if isinstance(event, GpuSamples)]
    processes = [event for event in events if isinstance(event, GpuProcesses)]
    return OneReading(
        source=changes[-1],
        samples=samples[-1] if samples else (),
        failures=failures,
        processes=processes[-1] if processes else None,
    )


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
