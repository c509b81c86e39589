"""When the requests of an open loop are due."""

from __future__ import annotations

import statistics
from itertools import islice, pairwise

import pytest

from gpu_dash.load.arrivals import due_times
from gpu_dash.model.load import Arrival


@pytest.mark.parametrize(
    ("arrival", "variation"),
    [(Arrival.CONSTANT, 0.0), (Arrival.POISSON, 1.0), (Arrival.GAMMA, 1.49)],
)
def test_the_mean_is_the_rate_and_the_spread_is_the_arrivals_own(
    arrival: Arrival, variation: float
) -> None:
    due = islice(due_times(arrival, 4.0, 1), 20001)
    gaps = [later - earlier for earlier, later in pairwise(due)]
    mean = statistics.fmean(gaps)
    assert mean == pytest.approx(0.25, rel=0.05)
    assert statistics.pstdev(gaps) / mean == pytest.approx(variation, abs=0.08)


def test_the_seed_decides() -> None:
    def first(seed: int) -> list[float]:
        return list(islice(due_times(Arrival.POISSON, 4.0, seed), 5))

    assert first(1) == first(1) != first(2)
