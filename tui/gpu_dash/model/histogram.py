"""A log-linear histogram of durations: 0.1 % or better, and small whatever the count.

Values are counted in buckets of nanoseconds whose width grows with the value: each power of two
is cut into ``2 ** PRECISION_BITS`` equal parts (the scheme of HdrHistogram, G. Tene, 2012), so
the middle of a bucket is within ``2 ** -(PRECISION_BITS + 1)`` of any value in it: 0.05 %.
Buckets are plain integers, so a histogram crosses a pipe as ``dict[int, int]`` and two are
merged by adding.
"""

from __future__ import annotations

from collections.abc import Mapping

PRECISION_BITS = 10
_PARTS = 1 << PRECISION_BITS


def bucket_of(seconds: float) -> int:
    """The bucket of a duration; negative ones count as zero."""
    value = max(0, round(seconds * 1e9))
    if value < _PARTS:
        return value
    shift = value.bit_length() - PRECISION_BITS - 1
    return (shift + 1) * _PARTS + (value >> shift) - _PARTS


def seconds_of(bucket: int) -> float:
    """The middle of a bucket, in seconds."""
    if bucket < _PARTS:
        return bucket / 1e9
    shift = bucket // _PARTS - 1
    low = (bucket % _PARTS + _PARTS) << shift
    return (low + ((1 << shift) - 1) / 2) / 1e9


class Histogram:
    """Counts by bucket."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def add(self, seconds: float) -> None:
        """Count one duration."""
        bucket = bucket_of(seconds)
        self.counts[bucket] = self.counts.get(bucket, 0) + 1

    def merge(self, counts: Mapping[int, int]) -> None:
        """Add another histogram's counts."""
        for bucket, count in counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count

    @property
    def total(self) -> int:
        """How many durations were counted."""
        return sum(self.counts.values())

    def percentile(self, percent: float) -> float | None:
        """The duration under which ``percent`` of the counted ones lie (nearest rank), in
        seconds; ``None`` when nothing was counted."""
        total = self.total
        if total == 0:
            return None
        rank = max(1, -(-total * percent // 100))
        seen = 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= rank:
                return seconds_of(bucket)
        raise AssertionError("unreachable: the ranks end at the total")
