"""One request, from the moment it is due to its last byte, and what it came to."""

from __future__ import annotations

import asyncio
import time
from array import array

from gpu_dash.load.answer import Answer
from gpu_dash.load.outcome import (
    describe_answer,
    make_detail,
    outcome_of_answer,
    outcome_of_status,
)
from gpu_dash.load.transport import Transport, TransportError
from gpu_dash.load.window import tokens_in_window
from gpu_dash.model.load import LoadPlan, Outcome, RequestRecord

_MAX_ERROR_BODY_BYTES = 65536


class Exchange:
    """Sends one request, reads the answer, and knows when it has waited long enough.

    It is the :class:`~gpu_dash.load.transport.ResponseSink` of its own transport.

    Args:
        request: number of the request.
        step: number of the step under which it is sent.
        concurrency: concurrency asked for when it is sent.
        plan: how many tokens it asks for, and how long it waits.
        due_at: when an open loop wanted it sent: its latency counts from there. ``None`` in a
            closed loop, where it is due now and its latency counts from when it is sent.
        secrets: the API key and the like, which must not show up in what is said about a failure.
        earlier: the attempt before this one at the same request: its latency counts from the
            first, and so does its time-out.
    """

    def __init__(
        self,
        *,
        request: int,
        step: int,
        concurrency: int,
        plan: LoadPlan,
        secrets: tuple[str, ...] = (),
        due_at: float | None = None,
        earlier: Exchange | None = None,
    ) -> None:
        self.request = request
        self.step = step
        self.concurrency = concurrency
        self.answer = Answer()
        self.scheduled_at = time.monotonic() if due_at is None else due_at
        self._is_of_open_loop = due_at is not None
        self._first_sent_at: float | None = None
        if earlier is not None:
            self.scheduled_at = earlier.scheduled_at
            self._is_of_open_loop = earlier._is_of_open_loop
            self._first_sent_at = earlier.sent_at
        self.sent_at: float = self.scheduled_at if earlier is None else earlier.sent_at
        self.arrivals = self.answer.arrivals
        """Stamps of the chunks that carry tokens."""
        self.outcome = Outcome.CANCELLED
        self.detail = "cancelled before it was sent"
        self._plan = plan
        self._secrets = secrets
        self._status = 0
        self._is_delimited = True
        self._error_body = bytearray()
        self._task: asyncio.Task[object] | None = None
        self._given_up: Outcome | None = None
        """Why it was ended from this side, once it was."""
        self._timer: asyncio.TimerHandle | None = None
        self._stall_is_watched = False

    async def run(self, transport: Transport, body: bytes) -> None:
        """Send the request and wait for the end of the answer, however it ends."""
        if self._given_up is None:
            self._task = asyncio.current_task()
            await self._post(transport, body)
            self._task = None
        self.detail = make_detail(self.detail, *self._secrets)

    @property
    def counts_from(self) -> float:
        """The moment from which its latency counts: a client that is late does not hide a server
        that is slow."""
        return self.scheduled_at if self._is_of_open_loop else self.sent_at

    @property
    def send_lag_s(self) -> float:
        """How much later than due it was sent."""
        return self.sent_at - self.scheduled_at

    def again(self) -> Exchange:
        """The next attempt at the same request."""
        return Exchange(
            request=self.request,
            step=self.step,
            concurrency=self.concurrency,
            plan=self._plan,
            secrets=self._secrets,
            earlier=self,
        )

    @property
    def is_given_up(self) -> bool:
        """It was ended from this side."""
        return self._given_up is not None

    def cancel(self) -> None:
        """End it now; what came so far is kept."""
        self._give_up(Outcome.CANCELLED)

    def record(self, opens_at: float | None, closes_at: float | None) -> RequestRecord:
        """The request as it ended.

        Args:
            opens_at: when the window of its step opens; ``None``: it has not been told yet.
            closes_at: when it closes; ``None``: it has not been told yet.
        """
        arrivals = self.arrivals
        tokens = self.answer.output_tokens
        ttft_s = arrivals[0] - self.counts_from if arrivals else None
        e2e_s = arrivals[-1] - self.counts_from if arrivals else None
        tpot_s = None
        if ttft_s is not None and e2e_s is not None and tokens > 1 and self.answer.is_streamed:
            tpot_s = (e2e_s - ttft_s) / (tokens - 1)
        is_inside = opens_at is not None and opens_at <= self.counts_from
        return RequestRecord(
            request=self.request,
            step=self.step,
            concurrency=self.concurrency,
            scheduled=self.scheduled_at,
            sent=self.sent_at,
            ttft_s=ttft_s,
            tpot_s=tpot_s,
            e2e_s=e2e_s,
            prompt_tokens=self.answer.prompt_tokens,
            output_tokens=tokens,
            tokens_in_window=(
                0 if opens_at is None else tokens_in_window(arrivals, tokens, opens_at, closes_at)
            ),
            counted=is_inside and (closes_at is None or self.counts_from < closes_at),
            outcome=self.outcome,
            detail=self.detail,
            usage_missing=self.answer.usage_missing,
        )

    def gaps(self) -> array[float]:
        """Seconds between each two chunks that carry tokens."""
        return gaps_between(self.arrivals)

    # -- what the transport says ---------------------------------------------------------------

    def on_sent(self, at: float) -> None:
        """See :class:`~gpu_dash.load.transport.ResponseSink`."""
        if self._first_sent_at is None:
            self.sent_at = at

    def on_head(self, status: int, *, is_delimited: bool) -> None:
        """See :class:`~gpu_dash.load.transport.ResponseSink`."""
        self._status = status
        self._is_delimited = is_delimited

    def on_data(self, data: bytes, at: float) -> bool:
        """See :class:`~gpu_dash.load.transport.ResponseSink`."""
        if self._is_refusal:
            self._error_body += data
            return len(self._error_body) >= _MAX_ERROR_BODY_BYTES
        self.answer.feed(data, at)
        if not self._stall_is_watched and self.answer.last_event_at is not None:
            self._stall_is_watched = True
            self._watch()
        return self.answer.is_over

    # -- the end -------------------------------------------------------------------------------

    async def _post(self, transport: Transport, body: bytes) -> None:
        self._watch()
        try:
            await transport.post(body, self)
        except TransportError as error:
            self._end(error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._given_up is None or task is None:
                raise
            task.uncancel()
            self._end(TransportError(self._given_up, self._words_for(self._given_up)))
        else:
            self._end(None)
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _end(self, broken: TransportError | None) -> None:
        """Find the outcome: a status that is no success comes first, then what broke the
        exchange before the answer was whole, then what the answer says."""
        if self._is_refusal:
            body = bytes(self._error_body).decode(errors="replace")
            self.outcome = outcome_of_status(self._status, body) or Outcome.SERVER_ERROR
            self.detail = f"HTTP {self._status} {body}".rstrip()
            return
        answer = self.answer
        if broken is None:
            answer.end()
            if not self._is_delimited:
                broken = TransportError(Outcome.DISCONNECTED, "closed in the middle of the answer")
        if broken is not None and not (answer.is_over or answer.finish_reason):
            self.outcome, self.detail = broken.outcome, broken.detail
            return
        asked_tokens = self._plan.output_tokens
        self.outcome = outcome_of_answer(answer, asked_tokens)
        self.detail = describe_answer(answer, self.outcome, asked_tokens)
        self.arrivals = answer.token_arrivals()

    @property
    def _is_refusal(self) -> bool:
        """A status came, and it is no success."""
        return self._status != 0 and not 200 <= self._status < 300

    def _words_for(self, outcome: Outcome) -> str:
        match outcome:
            case Outcome.STALLED:
                return f"no data for {self._plan.stall_s:g} s"
            case Outcome.TIMEOUT:
                return f"not ended after {self._plan.timeout_s:g} s"
            case _:
                return "cancelled"

    # -- patience ------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Look at the clock now, and again when the request may have waited long enough.

        One timer for each request, moved only when it fires: a token costs no timer.
        """
        if self._timer is not None:
            self._timer.cancel()
        timeout_at = self.scheduled_at + self._plan.timeout_s
        last_event_at = self.answer.last_event_at
        stall_at = timeout_at if last_event_at is None else last_event_at + self._plan.stall_s
        now = time.monotonic()
        if now >= timeout_at:
            self._give_up(Outcome.TIMEOUT)
        elif now >= stall_at:
            self._give_up(Outcome.STALLED)
        else:
            wait_s = min(timeout_at, stall_at) - now
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._watch)

    def _give_up(self, outcome: Outcome) -> None:
        if self._given_up is not None:
            return
        self._given_up = outcome
        if self._task is not None:
            self._task.cancel()


def gaps_between(stamps: array[float]) -> array[float]:
    """What lies between each two neighbours of ascending stamps."""
    return array("d", map(float.__sub__, stamps[1:], stamps[:-1]))
