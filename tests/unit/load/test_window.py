"""Tokens belong to the window in which they arrived, and none is lost or counted twice."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from gpu_dash.load.window import tokens_in_window

ARRIVALS = [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("tokens", "opens_at", "closes_at", "expected"),
    [
        (4, 0.0, 9.0, 4),
        (4, 0.0, None, 4),
        (4, 2.0, 4.0, 2),  # the opening moment is inside, the closing one is not
        (4, 2.5, 2.6, 0),
        (4, 4.0, 4.0, 0),
        (4, 9.0, 1.0, 0),
        (4, 5.0, 9.0, 0),
        (4, 0.0, 1.0, 0),
        (8, 2.0, 4.0, 4),  # two tokens a chunk
        (3, 0.0, 9.0, 3),  # fewer tokens than chunks
        (10, 0.0, 2.0, 2),
        (10, 2.0, 3.0, 3),
        (10, 3.0, 4.0, 2),
        (10, 4.0, 5.0, 3),
    ],
)
def test_a_window(tokens: int, opens_at: float, closes_at: float | None, expected: int) -> None:
    assert tokens_in_window(ARRIVALS, tokens, opens_at, closes_at) == expected


def test_no_chunk_no_token() -> None:
    assert tokens_in_window([], 5, 0.0, 9.0) == 0


@pytest.mark.parametrize("seed", range(200))
def test_adjacent_windows_add_up_to_all_tokens(seed: int) -> None:
    dice = random.Random(seed)
    # moments on a coarse grid, so that chunks fall together and onto the edges of windows
    arrivals = sorted(dice.randrange(20) / 2 for _ in range(dice.randint(1, 30)))
    tokens = dice.randint(0, 90)
    edges = sorted({-1.0, 11.0, *(dice.randrange(20) / 2 for _ in range(dice.randint(0, 8)))})
    counts = [
        tokens_in_window(arrivals, tokens, opens_at, closes_at)
        for opens_at, closes_at in pairwise(edges)
    ]
    assert sum(counts) == tokens
    assert min(counts) >= 0
