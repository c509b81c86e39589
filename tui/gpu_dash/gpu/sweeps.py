"""From sweeps to events: what the source is, what the cards say, and when they throttle."""

from __future__ import annotations

from collections.abc import Callable

from gpu_dash.gpu.backend import GpuBackend
from gpu_dash.gpu.protocol import GpuEvent
from gpu_dash.gpu.throttle import CardThrottle
from gpu_dash.model.events import GpuSamples, GpuSourceChanged
from gpu_dash.model.gpu import GpuInfo, GpuSourceState


class Sweeps:
    """Reads an opened back end and emits what is new.

    Args:
        backend: opened.
        emit: called with each event, in order; first the source's state.
        event_sources: where faults of the cards are heard.
    """

    def __init__(
        self,
        backend: GpuBackend,
        emit: Callable[[GpuEvent], None],
        event_sources: tuple[str, ...] = (),
    ) -> None:
        self._event_sources = event_sources
        self._backend = backend
        self._emit = emit
        self._announced: tuple[tuple[GpuInfo, ...], str] | None = None
        self._throttles: dict[int, CardThrottle] = {}

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
            )
        )
