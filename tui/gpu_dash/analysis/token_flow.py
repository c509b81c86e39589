"""When a request's tokens came, as far as its record says, and the throughput of any stretch of
time that follows from it.

A request's record has the moments of its first and last token and their number; its tokens are
spread evenly between the two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gpu_dash.model.load import RequestRecord

SECOND = 1.0


def first_and_last_token(request: RequestRecord, reported_at: float) -> tuple[float, float]:
    """The moments of a request's first and last token; where it had none, of its end.

    Args:
        request: as it ended.
        reported_at: when its end was reported, which stands in for what is not known.
    """
    last = reported_at if request.e2e_s is None else request.sent + request.e2e_s
    first = last if request.ttft_s is None else request.sent + request.ttft_s
    return first, last


def spread(
    tokens: int, first: float, last: float, interval_s: float
) -> Iterator[tuple[int, float]]:
    """Tokens by the interval in which they came: its number and how many."""
    if tokens == 0:
        return
    if last <= first:
        yield int(last // interval_s), tokens
        return
    for index in range(int(first // interval_s), int(last // interval_s) + 1):
        overlap = min((index + 1) * interval_s, last) - max(index * interval_s, first)
        if overlap > 0:
            yield index, tokens * overlap / (last - first)


class TokenFlow:
    """Output tokens per second of a session, from its requests in any order."""

    def __init__(self) -> None:
        self._tokens: defaultdict[int, float] = defaultdict(float)

    def add(self, request: RequestRecord, reported_at: float) -> None:
        """Take a request."""
        first, last = first_and_last_token(request, reported_at)
        for second, tokens in spread(request.output_tokens, first, last, SECOND):
            self._tokens[second] += tokens

    def tokens(self, start: float, end: float) -> float:
        """Tokens that came in a stretch of time; of a second that is only partly in it, its
        share."""
        seconds: Iterable[int] = self._tokens
        if end - start < len(self._tokens):
            seconds = range(int(start // 1), int(-(-end // 1)))
        return sum(
            self._tokens.get(second, 0.0) * (min(second + 1, end) - max(second, start))
            for second in seconds
            if second + 1 > start and second < end
        )

    def per_second(self) -> Iterator[tuple[float, float]]:
        """The seconds from the first token to the last, those without a token among them: the
        moment at which each began, and its tokens."""
        if self._tokens:
            for second in range(min(self._tokens), max(self._tokens) + 1):
                yield float(second), self._tokens.get(second, 0.0)
