"""Which of a request's tokens arrived inside a window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def tokens_in_window(
    arrivals: Sequence[float], output_tokens: int, opens_at: float, closes_at: float | None
) -> int:
    """Output tokens that arrived in ``[opens_at, closes_at)``.

    A chunk is not a token: the tokens are spread evenly over the chunks by cumulative rounding.
    So the counts of adjacent windows add up to ``output_tokens`` exactly, and a request that
    lies wholly inside a window counts whole.

    Args:
        arrivals: stamps of the chunks that carry tokens, ascending.
        output_tokens: how many tokens they carry together.
        opens_at: monotonic; a chunk at this very moment is inside.
        closes_at: monotonic, a chunk at this very moment is outside; ``None``: not closed.
    """
    chunks = len(arrivals)
    if chunks == 0:
        return 0
    before = bisect_left(arrivals, opens_at)
    until = chunks if closes_at is None else max(before, bisect_left(arrivals, closes_at))
    return output_tokens * until // chunks - output_tokens * before // chunks
