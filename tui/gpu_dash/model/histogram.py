"""A log-linear histogram of durations: 0.05 % or better, and small whatever the count.

Each power of two is cut into ``2 ** PRECISION_BITS`` equal parts (the scheme of HdrHistogram,
G. Tene, 2012), so the middle of a bucket is within ``2 ** -(PRECISION_BITS + 1)`` of any value in
it. That is how a double is laid out anyway: its exponent and the head of its mantissa *are* the
bucket, so a whole array of stamps is put into buckets by shifting its bits, a tenth of a
microsecond each. Buckets are plain integers: a histogram crosses a pipe as ``dict[int, int]`` and
two are merged by adding.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Mapping

PRECISION_BITS = 10
_DROPPED_BITS = 52 - PRECISION_BITS
_HALF_BUCKET = 1 << (_DROPPED_BITS - 1)
_DOUBLE = struct.Struct("<d")
_BITS = struct.Struct("<q")


def bucket_of(seconds: float) -> int:
    """The bucket of a duration; negative ones count as zero."""
    bits: int = _BITS.unpack(_DOUBLE.pack(max(0.0, seconds)))[0]
    return bits >> _DROPPED_BITS


def seconds_of(bucket: int) -> float:
    """The middle of a bucket, in seconds."""
    if bucket == 0:
        return 0.0
    middle: float = _DOUBLE.unpack(_BITS.pack((bucket << _DROPPED_BITS) | _HALF_BUCKET))[0]
    return middle


class Histogram:
    """Counts by bucket."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bucket_of(seconds)] += 1

    def add_all(self, seconds: array[float]) -> None:
        """Count many durations, none of them negative, of an array of doubles."""
        bits = memoryview(seconds).cast("B").cast("q")
        self.counts.update([value >> _DROPPED_BITS for value in bits])

    def merge(self, counts: Mapping[int, int]) -> None:
        """Add another histogram's counts."""
        self.counts.update(counts)

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
