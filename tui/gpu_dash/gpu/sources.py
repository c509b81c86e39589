"""Which back ends a source that a person named stands for, and which of them is there."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_dash.gpu.backend import GpuBackend, SourceAbsent, Sweep
from gpu_dash.gpu.processes import Holder
from gpu_dash.gpu.xid_watch import OnXid
from gpu_dash.model.gpu import GpuInfo


def make_backend(source: str, sim_url: str | None, sim_cards: int, on_xid: OnXid) -> GpuBackend:
    """The back end for a source, not opened yet. Each is imported only where it runs.

    Raises:
        SourceAbsent: no source was wanted.
    """
    if source == "none":
        raise SourceAbsent("no GPU readings were asked for")
    if source == "sim":
        from gpu_dash.gpu.simulated import SimulatedBackend

        return SimulatedBackend(sim_url, cards=sim_cards)
    backends: list[GpuBackend] = []
    if source in ("auto", "nvml"):
        from gpu_dash.gpu.nvml import NvmlBackend

        backends.append(NvmlBackend(on_xid))
    if source in ("auto", "amd"):
        from gpu_dash.gpu.amd import AmdBackend
        from gpu_dash.gpu.amd_library import AmdLibraryBackend
        from gpu_dash.gpu.smi_backend import SmiBackend

        backends += [AmdBackend(), AmdLibraryBackend(), SmiBackend()]
    return FirstPresent(backends)


class FirstPresent:
    """The first of several back ends that is there.

    Args:
        backends: in the order of preference, at least one.
    """

    def __init__(self, backends: Sequence[GpuBackend]) -> None:
        self._backends = backends
        self._chosen = backends[0]

    @property
    def source(self) -> str:
        """The source that was found, or the one that failed."""
        return self._chosen.source

    @property
    def gpus(self) -> tuple[GpuInfo, ...]:
        """The cards of the source that was found."""
        return self._chosen.gpus

    @property
    def detail(self) -> str:
        """What a person should know about it."""
        return self._chosen.detail

    @property
    def event_sources(self) -> tuple[str, ...]:
        """Where it hears of faults by itself."""
        return self._chosen.event_sources

    @property
    def event_sources_missing(self) -> tuple[str, ...]:
        """Where it could and does not."""
        return self._chosen.event_sources_missing

    def open(self) -> None:
        """Open the first that is there.

        Raises:
            SourceAbsent: none is there; says why for each.
            GpuSourceError: one is there and does not work. The next is not tried then: a broken
                driver is to be seen, not to be stepped over.
        """
        absent = []
        for backend in self._backends:
            self._chosen = backend
            try:
                backend.open()
            except SourceAbsent as error:
                absent.append(str(error))
            else:
                return
        self._chosen = self._backends[0]
        raise SourceAbsent("; ".join(absent))

    def sweep(self) -> Sweep:
        """Read all cards; as the source that was found."""
        return self._chosen.sweep()

    def processes(self) -> Sequence[Holder] | None:
        """Who computes on the cards; as the source that was found."""
        return self._chosen.processes()
