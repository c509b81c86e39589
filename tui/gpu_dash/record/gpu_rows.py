"""From ten samples a second to one row a second, and to ten rows a second around a throttle."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.events import GpuSamples, ThrottleBegan, ThrottleEnded
from gpu_dash.model.gpu import GpuInfo, GpuSample, ThrottleKind
from gpu_dash.model.offered import highest, lowest
from gpu_dash.record.rows import Extremes, gpu_row

LATE_S = 1.0
"""A second is closed this long after its end if no later sample closed it: the card is silent."""
FAST_AROUND_S = 10.0
"""Rows at full rate from this long before a throttle to this long after it."""
FAST_INTERVAL_S = 0.1
_FAST_SLACK_S = 0.02
"""Samples come a little early at times; a row is not skipped for that."""


@dataclass
class _Second:
    """The samples of one card in one second of the session."""

    second: int
    at: float
    latest: GpuSample
    extremes: Extremes
    clocks: int = 0
    """How many of the samples told a clock."""

    def add(self, at: float, sample: GpuSample) -> None:
        seen = self.extremes
        clock, mean = sample.sm_clock_mhz, seen.sm_clock_mean_mhz
        if clock is not None:
            self.clocks += 1
            mean = clock if mean is None else mean + (clock - mean) / self.clocks
        self.at = at
        self.latest = sample
        self.extremes = Extremes(
            temperature_max_celsius=highest(
                (seen.temperature_max_celsius, sample.temperature_celsius)
            ),
            power_max_watts=highest((seen.power_max_watts, sample.power_watts)),
            sm_clock_min_mhz=lowest((seen.sm_clock_min_mhz, clock)),
            sm_clock_mean_mhz=mean,
            throttle_reasons=tuple(
                dict.fromkeys((*seen.throttle_reasons, *sample.throttle_reasons))
            ),
        )


class GpuSeconds:
    """Rows of ``gpu.csv``: one per card and second of the session, with its newest values and
    the extremes of all its samples.

    Args:
        anchor: the session's.
        cards: what the cards are; the caller keeps it up to date.
    """

    def __init__(self, anchor: ClockAnchor, cards: Mapping[int, GpuInfo]) -> None:
        self._anchor = anchor
        self._cards = cards
        self._open: dict[int, _Second] = {}
        self._closed: dict[int, int] = {}

    def add(self, event: GpuSamples) -> Iterator[list[str]]:
        """Take a sweep; the rows of the seconds that it ended."""
        for sample in event.samples:
            second = int(self._anchor.time_s(event.at) // 1)
            # A sample that comes when its second's row is written already widens the next one.
            second = max(second, self._closed.get(sample.gpu, second - 1) + 1)
            current = self._open.get(sample.gpu)
            if current is not None and current.second >= second:
                current.add(event.at, sample)
                continue
            if current is not None:
                yield self._close(sample.gpu)
            clocks = 0 if sample.sm_clock_mhz is None else 1
            self._open[sample.gpu] = _Second(second, event.at, sample, Extremes.of(sample), clocks)

    def close_until(self, at: float) -> Iterator[list[str]]:
        """The rows of seconds that are over at that moment although no sample followed."""
        over = self._anchor.time_s(at) - LATE_S
        for gpu in [gpu for gpu, second in self._open.items() if second.second + 1 <= over]:
            yield self._close(gpu)

    def close_all(self) -> Iterator[list[str]]:
        """The rows of all seconds that have begun."""
        for gpu in list(self._open):
            yield self._close(gpu)

    def _close(self, gpu: int) -> list[str]:
        second = self._open.pop(gpu)
        self._closed[gpu] = second.second
        info = self._cards.get(gpu)
        return gpu_row(self._anchor, second.at, info, second.latest, second.extremes)


class FastRows:
    """Rows of ``gpu_fast.csv``: every tenth of a second of a card, from 10 s before it began to
    throttle to 10 s after it ended. A power cap is normal under load and no reason for them.

    Args:
        anchor: the session's.
        cards: what the cards are; the caller keeps it up to date.
    """

    def __init__(self, anchor: ClockAnchor, cards: Mapping[int, GpuInfo]) -> None:
        self._anchor = anchor
        self._cards = cards
        self._waiting: dict[int, deque[tuple[float, GpuSample]]] = {}
        self._throttles: dict[int, set[ThrottleKind]] = {}
        self._until: dict[int, float] = {}
        self._taken: dict[int, float] = {}

    def begin(self, event: ThrottleBegan) -> Iterator[list[str]]:
        """A throttle began: the rows of the card's last seconds."""
        if not event.kind.is_alarm:
            return
        self._throttles.setdefault(event.gpu, set()).add(event.kind)
        self._until.pop(event.gpu, None)
        for at, sample in self._waiting.pop(event.gpu, ()):
            if at >= event.at - FAST_AROUND_S:
                yield self._row(at, sample)

    def end(self, event: ThrottleEnded) -> None:
        """A throttle ended: rows go on for a while, longer if another one goes on."""
        kinds = self._throttles.get(event.gpu, set())
        if event.kind in kinds:
            kinds.discard(event.kind)
            if not kinds:
                self._until[event.gpu] = event.at + FAST_AROUND_S

    def add(self, event: GpuSamples) -> Iterator[list[str]]:
        """Take a sweep; its rows for cards whose throttle goes on or is just over."""
        for sample in event.samples:
            gpu = sample.gpu
            if event.at - self._taken.get(gpu, -math.inf) < FAST_INTERVAL_S - _FAST_SLACK_S:
                continue
            self._taken[gpu] = event.at
            if self._throttles.get(gpu) or event.at <= self._until.get(gpu, -math.inf):
                yield self._row(event.at, sample)
                continue
            waiting = self._waiting.setdefault(gpu, deque())
            waiting.append((event.at, sample))
            while waiting[0][0] < event.at - FAST_AROUND_S - LATE_S:
                waiting.popleft()

    def _row(self, at: float, sample: GpuSample) -> list[str]:
        return gpu_row(self._anchor, at, self._cards.get(sample.gpu), sample, Extremes.of(sample))
