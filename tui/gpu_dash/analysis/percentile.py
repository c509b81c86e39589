"""One definition of a percentile, so that two tables of one session never disagree."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The value under which ``percent`` of the values lie, interpolated linearly between its
    two neighbours (type 7 of Hyndman and Fan, the default of numpy, pandas and R).

    Args:
        values: in any order.
        percent: 0 to 100.

    Returns:
        ``None`` when there are no values.
    """
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
