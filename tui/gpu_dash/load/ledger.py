"""The requests of each step, from the first that was started until all have ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_dash.load.protocol import StartedRequest
from gpu_dash.model.histogram import Histogram
from gpu_dash.model.load import Outcome, RequestRecord


@dataclass(frozen=True)
class FinishedStep:
    """A step whose requests have all ended: what its result is computed from."""

    step: int
    concurrency: int
    opens_at: float
    """Monotonic moment at which its window opened."""
    closes_at: float
    """Monotonic moment at which its window closed. Not after ``opens_at`` when the load was
    changed before the window opened: such a step has no result."""
    first_sent_at: float | None
    """Its first send; ``None``: it sent nothing."""
    last_token_at: float | None
    """Its last token, in the window or not; ``None``: no token came."""
    requests: tuple[RequestRecord, ...]
    """All of its requests, in the order in which they ended."""
    gaps: dict[int, int]
    """Gaps between the tokens of the counted ones: bucket of the histogram to count."""

    @property
    def duration_s(self) -> float:
        """Length of the window; 0 if it never opened."""
        return max(0.0, self.closes_at - self.opens_at)

    @property
    def elapsed_s(self) -> float:
        """From the first send to the last token, start and tail included."""
        if self.first_sent_at is None or self.last_token_at is None:
            return 0.0
        return self.last_token_at - self.first_sent_at


@dataclass
class _OpenStep:
    requests: list[RequestRecord] = field(default_factory=list)
    gaps: Histogram = field(default_factory=Histogram)


class Ledger:
    """Keeps what the worker reports until a step has finished."""

    def __init__(self) -> None:
        self._steps: dict[int, _OpenStep] = {}
        self._open: dict[int, StartedRequest] = {}
        self.next_request = 1
        """A number that no request has had."""

    def start(self, requests: Iterable[StartedRequest]) -> None:
        """Requests were started."""
        for request in requests:
            self._open[request.request] = request
            self.next_request = max(self.next_request, request.request + 1)

    def end(self, step: int, requests: Iterable[RequestRecord], gaps: dict[int, int]) -> None:
        """Requests of a step ended."""
        entry = self._steps.setdefault(step, _OpenStep())
        for record in requests:
            self._open.pop(record.request, None)
            entry.requests.append(record)
        entry.gaps.merge(gaps)

    def cancel_open(self, detail: str) -> dict[int, tuple[RequestRecord, ...]]:
        """End what is still open as cancelled, because nobody will report its end.

        Returns:
            The records by step.
        """
        ended: dict[int, tuple[RequestRecord, ...]] = {}
        for request in self._open.values():
            record = RequestRecord(
                request=request.request,
                step=request.step,
                concurrency=request.concurrency,
                scheduled=request.at,
                sent=request.at,
                outcome=Outcome.CANCELLED,
                detail=detail,
            )
            ended[request.step] = (*ended.get(request.step, ()), record)
        for step, records in ended.items():
            self.end(step, records, {})
        return ended

    def finish(
        self, step: int, concurrency: int, opens_at: float | None, closes_at: float | None
    ) -> FinishedStep:
        """Close the books of a step.

        Args:
            step: its number.
            concurrency: what was asked for.
            opens_at: when its window opened; ``None``: with its first request.
            closes_at: when its window closed; ``None``: with its last token.
        """
        entry = self._steps.pop(step, _OpenStep())
        first_sent_at = min((record.sent for record in entry.requests), default=None)
        last_token_at = max(
            (record.sent + record.e2e_s for record in entry.requests if record.e2e_s is not None),
            default=None,
        )
        if opens_at is None:
            opens_at = first_sent_at if first_sent_at is not None else closes_at or 0.0
        if closes_at is None:
            closes_at = last_token_at if last_token_at is not None else opens_at
        return FinishedStep(
            step=step,
            concurrency=concurrency,
            opens_at=opens_at,
            closes_at=closes_at,
            first_sent_at=first_sent_at,
            last_token_at=last_token_at,
            requests=tuple(entry.requests),
            gaps=entry.gaps.counts,
        )
