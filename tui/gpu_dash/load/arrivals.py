"""When the requests of an open loop are due."""

from __future__ import annotations

import random
from collections.abc import Iterator

from gpu_dash.model.load import Arrival

_GAMMA_SHAPE = 0.45
"""Gaps of this shape vary 1.5 times as much as those of Poisson arrivals."""


def gaps_of(arrival: Arrival, rate: float, seed: object) -> Iterator[float]:
    """Seconds from each arrival to the next, without end; the mean is ``1 / rate``.

    Args:
        arrival: how they are spread.
        rate: arrivals per second.
        seed: the same makes the same gaps.
    """
    dice = random.Random(f"arrivals/{seed}")
    while True:
        match arrival:
            case Arrival.CONSTANT:
                yield 1 / rate
            case Arrival.POISSON:
                yield dice.expovariate(rate)
            case Arrival.GAMMA:
                yield dice.gammavariate(_GAMMA_SHAPE, 1 / (rate * _GAMMA_SHAPE))
