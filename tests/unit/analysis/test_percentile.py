"""The percentile is numpy's default; the expected values were taken from numpy 2."""

from __future__ import annotations

import random

import pytest

from gpu_dash.analysis.percentile import percentile


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([3.0], 50, 3.0),
        ([3.0], 99, 3.0),
        ([1, 2, 3, 4], 50, 2.5),
        ([4, 1, 3, 2], 50, 2.5),
        ([1, 2, 3, 4], 90, 3.7),
        ([1, 2, 3, 4], 99, 3.97),
        ([1, 2, 3, 4], 0, 1),
        ([1, 2, 3, 4], 100, 4),
        ([15, 20, 35, 40, 50], 40, 29.0),
        (list(range(101)), 99, 99),
    ],
)
def test_it_interpolates_linearly(values: list[float], percent: float, expected: float) -> None:
    assert percentile(values, percent) == pytest.approx(expected)


def test_no_values_have_no_percentile() -> None:
    assert percentile([], 50) is None


def test_it_stays_inside_the_values_and_leaves_them_in_their_order() -> None:
    values = [random.Random(1).random() for _ in range(501)]
    before = list(values)
    found = [percentile(values, percent) for percent in range(101)]
    assert values == before
    assert found == sorted(found, key=lambda value: value or 0)
    assert (found[0], found[-1]) == (min(values), max(values))
