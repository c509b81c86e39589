"""The books of each step, from its first request to its last."""

from __future__ import annotations

from gpu_dash.load.conductor import Level, StepFinished
from gpu_dash.load.ledger import Ledger
from gpu_dash.load.protocol import StartedRequest
from gpu_dash.model.load import Outcome, RequestRecord, Slo


def record(request: int, step: int, sent: float, e2e_s: float | None = None) -> RequestRecord:
    return RequestRecord(
        request=request, step=step, concurrency=4, scheduled=sent, sent=sent, e2e_s=e2e_s
    )


def finished(
    step: int,
    *,
    was_open: bool = True,
    opened_at: float | None = None,
    closed_at: float | None = None,
) -> StepFinished:
    return StepFinished(step, Level(4), Slo(ttft_s=1), was_open, opened_at, closed_at)


def test_a_step_gets_its_own_requests_and_all_its_gaps() -> None:
    ledger = Ledger()
    ledger.end(1, [record(1, 1, 0.0)], {5: 2})
    ledger.end(2, [record(3, 2, 0.0)], {5: 9})
    ledger.end(1, [record(2, 1, 0.0)], {5: 1, 6: 1})
    step = ledger.finish(finished(1, opened_at=1.0, closed_at=3.0), 4.0)
    assert step is not None
    assert [r.request for r in step.requests] == [1, 2]
    assert step.gaps == {5: 3, 6: 1}
    assert (step.opened_at, step.closed_at, step.ended_at) == (1.0, 3.0, 4.0)
    assert step.slo == Slo(ttft_s=1)


def test_a_step_of_so_many_requests_lasts_from_first_send_to_last_token() -> None:
    ledger = Ledger()
    ledger.end(1, [record(2, 1, 6.0, 1.0), record(1, 1, 5.0, 4.5), record(3, 1, 9.0)], {})
    step = ledger.finish(finished(1), 12.0)
    assert step is not None
    assert (step.opened_at, step.closed_at) == (5.0, 9.5)


def test_a_window_that_closes_before_the_first_send_is_empty() -> None:
    ledger = Ledger()
    ledger.end(1, [record(1, 1, 6.0)], {})
    step = ledger.finish(finished(1, closed_at=5.9), 12.0)
    assert step is not None
    assert step.opened_at == step.closed_at == 6.0


def test_a_step_without_a_window_or_without_a_request_has_no_result() -> None:
    ledger = Ledger()
    ledger.end(1, [record(1, 1, 0.0)], {})
    assert ledger.finish(finished(1, was_open=False, opened_at=1.0, closed_at=1.0), 4.0) is None
    assert ledger.finish(finished(2, opened_at=1.0, closed_at=3.0), 4.0) is None


def test_what_is_open_when_the_worker_is_lost_is_cancelled() -> None:
    ledger = Ledger()
    ledger.start([StartedRequest(1, 1, 4, 0.5), StartedRequest(2, 2, 8, 0.75)])
    ledger.end(1, [record(1, 1, 0.5)], {})
    ledger.start([StartedRequest(3, 2, 8, 1.0)])
    cancelled = ledger.cancel_open("it died")
    assert {step: [r.request for r in records] for step, records in cancelled.items()} == {
        2: [2, 3]
    }
    first = cancelled[2][0]
    assert (first.outcome, first.detail, first.sent, first.concurrency) == (
        Outcome.CANCELLED,
        "it died",
        0.75,
        8,
    )
    assert ledger.cancel_open("again") == {}
    step = ledger.finish(finished(2, opened_at=0.0, closed_at=9.0), 9.0)
    assert step is not None
    assert len(step.requests) == 2


def test_numbers_are_not_used_again() -> None:
    ledger = Ledger(first_request=10)
    assert ledger.next_request == 10
    ledger.start([StartedRequest(12, 1, 1, 0.0), StartedRequest(11, 1, 1, 0.0)])
    assert ledger.next_request == 13
