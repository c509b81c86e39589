"""One steady account out of the accounts of several samplers. Pure.

A sampler may be lost and replaced at any time, and the new one knows nothing of the old one's:
throttles that were open are ended at the last sign of life, throttle totals go on where they
were, and a state that was told already is not told again.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from gpu_dash.gpu.protocol import GpuEvent
from gpu_dash.model.events import GpuSamples, GpuSourceChanged, ThrottleBegan, ThrottleEnded
from gpu_dash.model.gpu import GpuSample, GpuSourceState, ThrottleKind


class Continuity:
    """Passes events on and remembers what the next sampler must go on from."""

    def __init__(self) -> None:
        self.live_since: float | None = None
        """Since when the present sampler is live; ``None``: it is not."""
        self.ever_live = False
        self.seen_at = 0.0
        """Moment of the newest reading."""
        self._source: GpuSourceChanged | None = None
        self._live: GpuSourceChanged | None = None
        self._throttles: dict[tuple[int, ThrottleKind], ThrottleBegan] = {}
        self._latest: dict[int, GpuSample] = {}
        self._carried: dict[int, GpuSample] = {}

    @property
    def source(self) -> str:
        """The source that was live last; empty: none was."""
        return "" if self._live is None else self._live.source

    @property
    def detail(self) -> str:
        """What was told last."""
        return "" if self._source is None else self._source.detail

    @property
    def read_for_s(self) -> float:
        """How long the present sampler has given readings."""
        return 0.0 if self.live_since is None else max(0.0, self.seen_at - self.live_since)

    def take(self, event: GpuEvent) -> Iterator[GpuEvent]:
        """What an event of the present sampler says to the agent."""
        match event:
            case GpuSourceChanged():
                if event.state is GpuSourceState.LIVE:
                    self.ever_live = True
                    self._live = event
                    if self.live_since is None:
                        self.live_since = event.at
                yield from self.tell(event)
            case GpuSamples():
                self.seen_at = event.at
                if self._carried:
                    samples = tuple(self._go_on(sample) for sample in event.samples)
                    event = replace(event, samples=samples)
                self._latest.update((sample.gpu, sample) for sample in event.samples)
                yield event
            case ThrottleBegan():
                self._throttles[event.gpu, event.kind] = event
                yield event
            case ThrottleEnded():
                self._throttles.pop((event.gpu, event.kind), None)
                yield event
            case _:
                yield event

    def tell(self, event: GpuSourceChanged) -> Iterator[GpuSourceChanged]:
        """The event, unless it repeats the one before."""
        before, self._source = self._source, event
        if before is None or replace(before, at=event.at) != event:
            yield event

    def speaks_again(self, at: float) -> Iterator[GpuSourceChanged]:
        """The state to return to when a silent sampler goes on."""
        if self.live_since is not None and self._live is not None:
            yield from self.tell(replace(self._live, at=at))

    def ended(self) -> Iterator[GpuEvent]:
        """What the end of the present sampler means."""
        self.live_since = None
        for began in self._throttles.values():
            yield ThrottleEnded(
                at=max(self.seen_at, began.at),
                gpu=began.gpu,
                kind=began.kind,
                began_at=began.at,
                peak_temperature_celsius=began.temperature_celsius,
                lowest_sm_clock_mhz=began.sm_clock_mhz,
            )
        self._throttles.clear()
        self._carried.update(self._latest)

    def _go_on(self, sample: GpuSample) -> GpuSample:
        before = self._carried.get(sample.gpu)
        if before is None:
            return sample
        return replace(
            sample,
            throttle_thermal_s=_sum(before.throttle_thermal_s, sample.throttle_thermal_s),
            throttle_power_s=_sum(before.throttle_power_s, sample.throttle_power_s),
        )


def _sum(before: float | None, now: float | None) -> float | None:
    return now if before is None or now is None else before + now
