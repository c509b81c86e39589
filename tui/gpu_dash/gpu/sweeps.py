"""From sweeps to events: what the source is, what the cards say, and when they throttle."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpu_dash.gpu.backend import GpuBackend
from gpu_dash.gpu.processes import describe_processes
from gpu_dash.gpu.protocol import GpuEvent
from gpu_dash.gpu.throttle import CardThrottle
from gpu_dash.model.events import GpuProcesses, GpuSamples, GpuSourceChanged
from gpu_dash.model.gpu import GpuInfo, GpuProcess, GpuSourceState

PROCESSES_INTERVAL_S = 5.0


class Sweeps:
    """Reads an opened back end and emits what is new.

    Args:
        backend: opened.
        emit: called with each event, in order; first the source's state.
        event_sources: where faults of the cards are heard.
        event_sources_missing: where they are not, with the reasons.
    """

    def __init__(
        self,
        backend: GpuBackend,
        emit: Callable[[GpuEvent], None],
        event_sources: tuple[str, ...] = (),
        event_sources_missing: tuple[str, ...] = (),
    ) -> None:
        self._event_sources = event_sources
        self._event_sources_missing = event_sources_missing
        self._backend = backend
        self._emit = emit
        self._announced: tuple[tuple[GpuInfo, ...], str] | None = None
        self._throttles: dict[int, CardThrottle] = {}
        self._processes: tuple[tuple[GpuProcess, ...], str] | None = None
        self._processes_due = -math.inf

    def sweep(self) -> None:
        """Read all cards once and emit what they say.

        Raises:
            GpuSourceError: the source is gone.
        """
        sweep = self._backend.sweep()
        self._announce(sweep.at)
        for failure in sweep.failures:
            self._emit(failure)
        samples = []
        silent = set(self._throttles)
        for reading in sweep.readings:
            gpu = reading.sample.gpu
            silent.discard(gpu)
            sample, edges = self._throttles[gpu].see(sweep.at, reading)
            samples.append(sample)
            for edge in edges:
                self._emit(edge)
        for gpu in sorted(silent):
            for edge in self._throttles[gpu].miss(sweep.at):
                self._emit(edge)
        if samples:
            self._emit(GpuSamples(at=sweep.at, samples=tuple(samples)))
        if sweep.at >= self._processes_due:
            self._processes_due = sweep.at + PROCESSES_INTERVAL_S
            self._look_for_processes(sweep.at)

    def _look_for_processes(self, at: float) -> None:
        holders = self._backend.processes()
        if holders is None:
            return
        told = describe_processes(holders)
        if told != self._processes:
            self._processes = told
            self._emit(GpuProcesses(at=at, processes=told[0], detail=told[1]))

    def _announce(self, at: float) -> None:
        gpus, detail = self._backend.gpus, self._backend.detail
        if self._announced == (gpus, detail):
            return
        self._announced = (gpus, detail)
        for info in gpus:
            throttle = self._throttles.setdefault(info.gpu, CardThrottle(info.gpu))
            throttle.sm_clock_max_mhz = info.sm_clock_max_mhz
        self._emit(
            GpuSourceChanged(
                at=at,
                source=self._backend.source,
                state=GpuSourceState.LIVE,
                detail=detail,
                gpus=gpus,
                event_sources=self._event_sources,
                event_sources_missing=self._event_sources_missing,
            )
        )
