"""What the sampler child and the agent say to each other, as frames on the child's pipes."""

from __future__ import annotations

import msgspec

from gpu_dash.model.events import (
    Finding,
    GpuProcesses,
    GpuReadFailed,
    GpuSamples,
    GpuSourceChanged,
    ThrottleBegan,
    ThrottleEnded,
)

GpuEvent = (
    GpuSourceChanged
    | GpuSamples
    | GpuProcesses
    | GpuReadFailed
    | ThrottleBegan
    | ThrottleEnded
    | Finding
)
"""From the child: first how the source fares, then what it reads."""


class SetSimulatedUrl(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """To the child: where the simulated cards are now; ``None``: no server runs."""

    url: str | None


SOURCES = ("auto", "nvml", "amd", "sim", "none")
"""What a person may ask for."""

SIMULATED_CARDS = 4
"""Simulated cards that idle while no server has named its own."""
EXIT_NO_SOURCE = 4
"""The child's exit code when there is nothing to read and trying again is no use."""
EXIT_SOURCE_LOST = 75
"""The child's exit code when a fresh process may find the source again: a driver that was
reloaded is only read by a process that maps its new library."""
