"""What each card did while there was load: what the verdict is judged by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import GpuSample, ThrottleKind
from gpu_dash.model.load import LoadState
from gpu_dash.model.offered import highest, lowest


@dataclass(frozen=True)
class CardRecord:
    """One card over the time of the load. ``None``: the card does not offer it."""

    gpu: int
    peak_utilization_percent: float | None = None
    min_headroom_celsius: float | None = None
    """The nearest it came to the nearest of its limits."""
    throttle_thermal_s: float | None = None
    throttled_thermally: bool = False
    lost: bool = False


@dataclass
class CardWatch:
    """Folds events of the road into one :class:`CardRecord` per card.

    Only what happens under load counts: a card that was busy while the model was loaded has not
    shown that it works.
    """

    _records: dict[int, CardRecord] = field(default_factory=dict)
    _thermal_before: dict[int, float] = field(default_factory=dict)
    _throttling: set[int] = field(default_factory=set)
    _loaded: bool = False

    def fold(self, event: ev.Event) -> None:
        """Take one event; those that say nothing about cards or load are ignored."""
        match event:
            case ev.LoadChanged(state=state):
                self._loaded = state not in (LoadState.IDLE, LoadState.PAUSED)
            case ev.GpuSamples(samples=samples):
                for sample in samples:
                    self._sample(sample)
            case ev.ThrottleBegan(gpu=gpu, kind=ThrottleKind.THERMAL):
                self._throttling.add(gpu)
                if self._loaded:
                    self._records[gpu] = replace(self._record(gpu), throttled_thermally=True)
            case ev.ThrottleEnded(gpu=gpu, kind=ThrottleKind.THERMAL):
                self._throttling.discard(gpu)
            case ev.GpuReadFailed(gpu=gpu, lost=True):
                self._records[gpu] = replace(self._record(gpu), lost=True)
            case _:
                pass

    def records(self) -> tuple[CardRecord, ...]:
        """The cards that were seen under load or lost, by index."""
        return tuple(self._records[gpu] for gpu in sorted(self._records))

    def _record(self, gpu: int) -> CardRecord:
        return self._records.get(gpu) or CardRecord(gpu=gpu)

    def _sample(self, sample: GpuSample) -> None:
        thermal = sample.throttle_thermal_s
        before = self._thermal_before.get(sample.gpu, thermal)
        if thermal is not None:
            self._thermal_before[sample.gpu] = thermal
        if not self._loaded:
            return
        record = self._record(sample.gpu)
        throttled_s = record.throttle_thermal_s
        if thermal is not None and before is not None:
            throttled_s = (throttled_s or 0.0) + max(0.0, thermal - before)
        self._records[sample.gpu] = replace(
            record,
            peak_utilization_percent=highest(
                (record.peak_utilization_percent, sample.utilization_percent)
            ),
            min_headroom_celsius=lowest((record.min_headroom_celsius, sample.headroom_celsius)),
            throttle_thermal_s=throttled_s,
            throttled_thermally=(
                record.throttled_thermally or sample.gpu in self._throttling or bool(throttled_s)
            ),
        )
