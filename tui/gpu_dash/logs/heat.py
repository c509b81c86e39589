"""What the cards did while a finding came about, and what that makes of its first check.

A collective that timed out reads the same whether a card was throttled to a crawl or a cable is
bad. Readings of the cards tell the two apart, so they decide what is looked at first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from gpu_dash.model.events import Finding
from gpu_dash.model.gpu import GpuSample

NEAR_LIMIT_CELSIUS = 3.0
"""A card this close to the nearest of its limits counts as hot though it does not throttle yet."""
BEFORE_S = 60.0
"""Heat this long before something was said may have to do with it, where the line does not say
how long it waited."""

BUCKET_S = 10.0
"""Readings are kept as the extremes of so long."""
THERMAL_REASONS = frozenset({"hw_thermal", "sw_thermal", "thermal"})

_COLLECTIVE = frozenset({"nccl_timeout", "stall"})
"""Kinds that heat explains; when the cards are cool, that is said, too."""
_HARDWARE = frozenset({"gpu_lost", "worker_died"})
"""Kinds for which heat just before is worth a look, and coolness proves nothing."""
_WAITED = re.compile(
    r"ran for (?P<ms>\d+) milli|Timeout\(ms\)=(?P<limit_ms>\d+)"
    r"|(?:stuck for|found in|timed out after) (?P<s>\d+) ?s"
)
_DEFAULT_WAIT_S = {"nccl_timeout": 600.0, "stall": 60.0}
_INDEX = re.compile(r"(?:.* gpu|gpu|rank|tp):(\d+)")


class CardHeat(msgspec.Struct, frozen=True, kw_only=True):
    """One card over some time."""

    gpu: int
    peak_temperature_celsius: float | None = None
    headroom_celsius: float | None = None
    """The least there was."""
    thermal_reasons: tuple[str, ...] = ()
    """Names of the thermal throttle reasons that were seen."""
    lowest_sm_clock_mhz: float | None = None
    """While it throttled."""
    sm_clock_max_mhz: float | None = None

    @property
    def is_hot(self) -> bool:
        """It throttled thermally, or was about to."""
        near = self.headroom_celsius is not None and self.headroom_celsius <= NEAR_LIMIT_CELSIUS
        return bool(self.thermal_reasons) or near

    def __str__(self) -> str:
        words = []
        if self.peak_temperature_celsius is not None:
            words.append(f"{self.peak_temperature_celsius:.0f} °C")
        if self.thermal_reasons:
            words.append(f"throttled ({', '.join(self.thermal_reasons)})")
        if self.lowest_sm_clock_mhz is not None and self.thermal_reasons:
            of = "" if self.sm_clock_max_mhz is None else f" of {self.sm_clock_max_mhz:.0f}"
            words.append(f"{self.lowest_sm_clock_mhz:.0f}{of} MHz")
        return f"GPU {self.gpu}: {', '.join(words) or 'no temperature'}"


@dataclass(slots=True)
class _Bucket:
    temperature: float | None = None
    headroom: float | None = None
    clock: float | None = None
    reasons: frozenset[str] = frozenset()


class HeatHistory:
    """What each card did, in sums of ten seconds: a day of readings takes little memory.

    Args:
        keep_s: forget what is older than this before the newest; ``None``: nothing.
    """

    def __init__(self, keep_s: float | None = None) -> None:
        self._keep_s = keep_s
        self._buckets: dict[int, dict[int, _Bucket]] = {}
        self._clock_max: dict[int, float] = {}

    @property
    def span(self) -> tuple[float, float] | None:
        """Moments between which there are readings; ``None`` if there is none."""
        if not self._buckets:
            return None
        return min(self._buckets) * BUCKET_S, (max(self._buckets) + 1) * BUCKET_S

    def add(self, moment: float, sample: GpuSample, sm_clock_max_mhz: float | None = None) -> None:
        """Take a reading.

        Args:
            moment: on any one clock.
            sample: of its throttle reasons only the thermal ones count.
            sm_clock_max_mhz: of the card, where it is known.
        """
        key = int(moment // BUCKET_S)
        if key not in self._buckets:
            self._buckets[key] = {}
            self._forget(key)
        bucket = self._buckets[key].setdefault(sample.gpu, _Bucket())
        bucket.temperature = max(
            _known((bucket.temperature, sample.temperature_celsius)), default=None
        )
        bucket.headroom = min(_known((bucket.headroom, sample.headroom_celsius)), default=None)
        reasons = THERMAL_REASONS.intersection(sample.throttle_reasons)
        if reasons:
            bucket.reasons |= reasons
            bucket.clock = min(_known((bucket.clock, sample.sm_clock_mhz)), default=None)
        if sm_clock_max_mhz is not None:
            self._clock_max[sample.gpu] = sm_clock_max_mhz

    def between(self, begin: float, end: float) -> tuple[CardHeat, ...]:
        """Every card over some time, by index; empty if there is no reading in it."""
        seen: dict[int, list[_Bucket]] = {}
        for key in range(int(begin // BUCKET_S), int(end // BUCKET_S) + 1):
            for gpu, bucket in self._buckets.get(key, {}).items():
                seen.setdefault(gpu, []).append(bucket)
        return tuple(self._heat(gpu, seen[gpu]) for gpu in sorted(seen))

    def _heat(self, gpu: int, buckets: list[_Bucket]) -> CardHeat:
        throttled = [bucket for bucket in buckets if bucket.reasons]
        return CardHeat(
            gpu=gpu,
            peak_temperature_celsius=max(_known(b.temperature for b in buckets), default=None),
            headroom_celsius=min(_known(b.headroom for b in buckets), default=None),
            thermal_reasons=tuple(sorted({name for b in throttled for name in b.reasons})),
            lowest_sm_clock_mhz=min(_known(b.clock for b in throttled), default=None),
            sm_clock_max_mhz=self._clock_max.get(gpu),
        )

    def _forget(self, newest: int) -> None:
        if self._keep_s is None:
            return
        oldest = newest - int(self._keep_s // BUCKET_S)
        for key in [key for key in self._buckets if key < oldest]:
            del self._buckets[key]


def seconds_before(finding: Finding) -> float | None:
    """How far back the cards' readings matter for a finding; ``None``: not at all."""
    if finding.kind not in _COLLECTIVE | _HARDWARE:
        return None
    found = _WAITED.search(finding.message)
    waited_s = _DEFAULT_WAIT_S.get(finding.kind, 0.0)
    if found is not None:
        milliseconds = found["ms"] or found["limit_ms"]
        waited_s = int(milliseconds) / 1000 if milliseconds else float(found["s"])
    return waited_s + BEFORE_S


def advise(finding: Finding, cards: Sequence[CardHeat]) -> Finding:
    """The finding with a first check that fits what the cards did.

    Args:
        finding: as the log alone tells it.
        cards: every card over :func:`seconds_before` the finding; empty where that is not known.
    """
    if not cards or finding.kind not in _COLLECTIVE | _HARDWARE:
        return finding
    hot = sorted((card for card in cards if card.is_hot), key=_heat, reverse=True)
    if hot:
        first = (
            f"temperature first: {'; '.join(map(str, hot))}: "
            "air flow, fan and power limit of that card"
        )
        return _replace(finding, first, (finding.first_check, *finding.checks))
    if finding.kind in _HARDWARE or not any(c.peak_temperature_celsius for c in cards):
        return finding
    hottest = max(cards, key=_heat)
    index = _INDEX.fullmatch(finding.subject)
    of = f" of GPU {index[1]}" if index and any(c.gpu == int(index[1]) for c in cards) else ""
    first = (
        f"XID in the kernel log{of} (temperatures are normal: {hottest}, no thermal throttle); "
        "then the P2P path: `nvidia-smi topo -m`, IOMMU/ACS"
    )
    return _replace(finding, first, finding.checks)


def _heat(card: CardHeat) -> tuple[bool, float]:
    return (bool(card.thermal_reasons), card.peak_temperature_celsius or 0.0)


def _replace(finding: Finding, first_check: str, checks: tuple[str, ...]) -> Finding:
    return msgspec.structs.replace(finding, first_check=first_check, checks=checks)


def _known(values: Iterable[float | None]) -> Iterator[float]:
    return (value for value in values if value is not None)
