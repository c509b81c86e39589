"""Extremes and sums of values of which some are not offered (``None``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def highest(values: Iterable[Number | None]) -> Number | None:
    """The highest of the values that there are; ``None`` if there are none."""
    return max((value for value in values if value is not None), default=None)


def lowest(values: Iterable[Number | None]) -> Number | None:
    """The lowest of the values that there are; ``None`` if there are none."""
    return min((value for value in values if value is not None), default=None)


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum of the values that there are; ``None``, not zero, if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
