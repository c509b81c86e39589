"""The requests of each step, from the first that was started until all have ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_dash.load.conductor import StepFinished
from gpu_dash.load.protocol import StartedRequest
from gpu_dash.model.histogram import Histogram
from gpu_dash.model.load import Outcome, RequestRecord, Slo


@dataclass(frozen=True)
class FinishedStep:
    """A step whose requests have all ended: what its result is computed from."""

    step: int
    concurrency: int | None
    """Requests in flight that it asked for; ``None`` for an open loop."""
    request_rate: float | None
    """Requests per second that an open loop asked for."""
    slo: Slo | None
    """What its requests had to meet."""
    opened_at: float
    """Monotonic moment at which its window opened."""
    closed_at: float
    """Monotonic moment at which its window closed."""
    ended_at: float
    """Monotonic moment at which the last of its requests was known to have ended."""
    requests: tuple[RequestRecord, ...]
    """All of its requests, in the order in which they ended."""
    gaps: dict[int, int]
    """Gaps between the tokens of the counted ones: bucket of the histogram to count."""
    client_bound: bool = False
    """The client was the limit."""


@dataclass
class _OpenStep:
    requests: list[RequestRecord] = field(default_factory=list)
    gaps: Histogram = field(default_factory=Histogram)


class Ledger:
    """Keeps what the worker reports until a step has finished.

    Args:
        first_request: number of the first request; above 1 where a session goes on.
    """

    def __init__(self, first_request: int = 1) -> None:
        self._steps: dict[int, _OpenStep] = {}
        self._open: dict[int, StartedRequest] = {}
        self.next_request = first_request
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

    def finish(self, finished: StepFinished, now: float) -> FinishedStep | None:
        """Close the books of a step.

        Returns:
            The step; ``None`` if it has no result, because its window never opened or it sent
            nothing.
        """
        entry = self._steps.pop(finished.step, None)
        if entry is None or not finished.was_open:
            return None
        opened_at, closed_at = finished.opened_at, finished.closed_at
        if opened_at is None:
            opened_at = min(record.sent for record in entry.requests)
        if closed_at is None:
            closed_at = max(record.sent + (record.e2e_s or 0.0) for record in entry.requests)
        return FinishedStep(
            step=finished.step,
            concurrency=finished.level.concurrency if finished.level.rate is None else None,
            request_rate=finished.level.rate,
            slo=finished.slo,
            opened_at=opened_at,
            closed_at=max(opened_at, closed_at),
            ended_at=now,
            requests=tuple(entry.requests),
            gaps=entry.gaps.counts,
        )
