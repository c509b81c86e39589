"""Durations in buckets: close to the truth, and the same whatever way they are added up."""

from __future__ import annotations

import random
from array import array

import pytest

from gpu_dash.model.histogram import Histogram, bucket_of, seconds_of

NANOSECOND = 1e-9


def durations(seed: int, count: int = 400) -> list[float]:
    dice = random.Random(seed)
    return [10 ** dice.uniform(-9, 5) for _ in range(count)]


@pytest.mark.parametrize("seed", range(20))
def test_the_middle_of_a_bucket_is_within_a_twentieth_of_a_percent(seed: int) -> None:
    for seconds in durations(seed):
        assert abs(seconds_of(bucket_of(seconds)) - seconds) <= max(
            0.0005 * seconds, 0.5001 * NANOSECOND
        )


@pytest.mark.parametrize("seed", range(5))
def test_longer_durations_are_in_later_buckets(seed: int) -> None:
    buckets = [bucket_of(seconds) for seconds in sorted(durations(seed))]
    assert buckets == sorted(buckets)


@pytest.mark.parametrize("nanoseconds", [0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 2**40])
def test_a_bucket_holds_its_own_middle(nanoseconds: int) -> None:
    bucket = bucket_of(nanoseconds * NANOSECOND)
    assert bucket_of(seconds_of(bucket)) == bucket


def test_every_bucket_up_to_an_hour_holds_its_own_middle() -> None:
    buckets = range(bucket_of(NANOSECOND), bucket_of(3600.0))
    assert all(bucket_of(seconds_of(bucket)) == bucket for bucket in buckets)


def test_a_negative_duration_counts_as_zero() -> None:
    assert bucket_of(-1.0) == bucket_of(0.0) == 0


@pytest.mark.parametrize("percent", [0, 1, 50, 90, 99, 99.9, 100])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 101])
def test_a_percentile_is_the_nearest_rank(percent: float, count: int) -> None:
    values = sorted(durations(7, count))
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    rank = max(1, -(-count * percent // 100))
    assert histogram.percentile(percent) == pytest.approx(
        values[int(rank) - 1], rel=0.0005, abs=NANOSECOND
    )


def test_many_at_once_are_counted_like_one_by_one() -> None:
    values = array("d", [0.0, *durations(11)])
    one_by_one, at_once = Histogram(), Histogram()
    for value in values:
        one_by_one.add(value)
    at_once.add_all(values)
    assert at_once.counts == one_by_one.counts


def test_merging_is_adding() -> None:
    one, other, both = Histogram(), Histogram(), Histogram()
    for index, value in enumerate(durations(3)):
        (one if index % 3 else other).add(value)
        both.add(value)
    one.merge(other.counts)
    assert one.counts == both.counts
    assert one.total == 400


def test_nothing_counted_has_no_percentile() -> None:
    assert Histogram().percentile(50) is None
    assert Histogram().total == 0
