"""The seam between the sampler and what it reads: one sweep at a time over all cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gpu_dash.gpu.processes import Holder
from gpu_dash.model.errors import GpuSourceError
from gpu_dash.model.events import GpuReadFailed
from gpu_dash.model.gpu import GpuInfo, GpuSample


class SourceAbsent(GpuSourceError):
    """This host has nothing that the source could read: no driver, no card."""


@dataclass(frozen=True, slots=True)
class ThrottleCounters:
    """What a card counted since its driver was loaded; ``None``: it does not count this.

    The counters see what happens between two polled samples.
    """

    sw_power_cap_s: float | None = None
    sw_thermal_s: float | None = None
    hw_thermal_s: float | None = None
    thermal_s: float | None = None
    """Software and hardware in one, which is all that older drivers count."""
    hw_power_brake_s: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What one card said in one sweep."""

    sample: GpuSample
    """Without the throttle totals, which the throttle detector adds."""
    counters: ThrottleCounters | None = None
    """``None``: they were not read in this sweep."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """What all cards said at one moment."""

    at: float
    readings: tuple[Reading, ...]
    """Of the cards that answered."""
    failures: tuple[GpuReadFailed, ...] = ()
    """Those that are new or changed since the sweep before."""


class GpuBackend(Protocol):
    """A source of readings. It is opened once; the end of the process closes it."""

    @property
    def source(self) -> str:
        """``nvml``, ``amd`` or ``sim``."""
        ...

    @property
    def gpus(self) -> tuple[GpuInfo, ...]:
        """The cards there are, which may change from sweep to sweep."""
        ...

    @property
    def detail(self) -> str:
        """What a person should know about a source that works; mostly nothing."""
        ...

    @property
    def event_sources(self) -> tuple[str, ...]:
        """Where it hears of faults by itself: ``nvml`` or nothing."""
        ...

    @property
    def event_sources_missing(self) -> tuple[str, ...]:
        """Where it could and does not, with the reason."""
        ...

    def open(self) -> None:
        """Find the cards.

        Raises:
            GpuSourceError: the source cannot be used; says why and what to do.
        """
        ...

    def sweep(self) -> Sweep:
        """Read all cards once.

        Raises:
            GpuSourceError: the source as a whole is gone.
        """
        ...

    def processes(self) -> Sequence[Holder] | None:
        """Who computes on the cards; ``None`` where the source does not tell.

        Raises:
            GpuSourceError: the source as a whole is gone.
        """
        ...


@runtime_checkable
class MovableSource(Protocol):
    """A source that can be read somewhere else while it runs."""

    def set_url(self, url: str | None) -> None:
        """Read there from the next sweep on. May be called from any thread."""
        ...
