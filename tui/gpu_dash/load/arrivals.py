"""When the requests of an open loop are due."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from gpu_dash.model.load import Arrival

_GAMMA_SHAPE = 0.45
"""Gaps of this shape vary 1.5 times as much as those of Poisson arrivals."""


def due_times(arrival: Arrival, rate: float, seed: object) -> Iterator[float]:
    """Seconds from the begin of a step to each arrival, without end; the first is at once.

    Args:
        arrival: how they are spread.
        rate: arrivals per second.
        seed: the same makes the same times.
    """
    if arrival is Arrival.CONSTANT:
        yield from (number / rate for number in itertools.count())
    else:
        yield from itertools.accumulate(_gaps_of(arrival, rate, seed), initial=0.0)


def _gaps_of(arrival: Arrival, rate: float, seed: object) -> Iterator[float]:
    """Seconds from each arrival to the next, without end; the mean is ``1 / rate``."""
    dice = random.Random(f"arrivals/{seed}")
    while True:
        if arrival is Arrival.GAMMA:
            yield dice.gammavariate(_GAMMA_SHAPE, 1 / (rate * _GAMMA_SHAPE))
        else:
            yield dice.expovariate(rate)
