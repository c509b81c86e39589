"""One request: how it ends, how long it waits, and what it comes to."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from gpu_dash.load.exchange import Exchange
from gpu_dash.load.transport import ResponseSink, TransportError
from gpu_dash.model.load import LoadPlan, Outcome
from tests.unit.load.scripted import (
    Script,
    ScriptedTransport,
    broken,
    forever,
    quick,
    say,
    silent,
)

PLAN = LoadPlan(output_tokens=2, timeout_s=20.0, stall_s=10.0)


def exchange_of(plan: LoadPlan = PLAN, secrets: tuple[str, ...] = ()) -> Exchange:
    return Exchange(request=7, step=3, concurrency=4, plan=plan, secrets=secrets)


async def run(script: Script, plan: LoadPlan = PLAN, secrets: tuple[str, ...] = ()) -> Exchange:
    exchange = exchange_of(plan, secrets)
    await exchange.run(ScriptedTransport(script), b"{}")
    return exchange


async def test_a_whole_answer() -> None:
    exchange = await run(quick)
    record = exchange.record(exchange.sent_at, None)
    assert (record.request, record.step, record.concurrency) == (7, 3, 4)
    assert (record.outcome, record.detail) == (Outcome.OK, "")
    assert (record.output_tokens, record.tokens_in_window, record.prompt_tokens) == (2, 2, 5)
    assert record.counted
    assert not record.usage_missing
    assert record.ttft_s is not None
    assert record.e2e_s is not None
    assert record.tpot_s == record.e2e_s - record.ttft_s
    assert record.scheduled <= record.sent
    assert len(exchange.gaps()) == 1


@pytest.mark.parametrize(
    ("opens", "closes", "counted", "tokens"),
    [
        (None, None, False, 0),
        (0.0, None, True, 2),
        (0.0, 1.0, True, 2),
        (0.0, 0.0, False, 0),
        (1.0, 2.0, False, 0),
        (-1.0, 0.0, False, 0),
    ],
)
async def test_what_counts_by_the_window(
    opens: float | None, closes: float | None, counted: bool, tokens: int
) -> None:
    exchange = await run(quick)
    sent_at = exchange.sent_at
    record = exchange.record(
        None if opens is None else sent_at + opens, None if closes is None else sent_at + closes
    )
    assert (record.counted, record.tokens_in_window) == (counted, tokens)


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.DISCONNECTED, Outcome.MALFORMED])
async def test_an_exchange_that_breaks(outcome: Outcome) -> None:
    record = (await run(broken(outcome, "a"))).record(0.0, None)
    assert (record.outcome, record.detail) == (outcome, "it broke")
    assert (record.output_tokens, record.usage_missing) == (1, True)
    assert record.ttft_s is not None


async def test_a_break_after_the_model_has_finished_loses_nothing() -> None:
    async def script(sink: ResponseSink) -> None:
        sink.on_head(200, is_delimited=True)
        say(sink, "a")
        sink.on_data(
            b'data: {"choices": [{"text": "b", "finish_reason": "length"}]}\n\n', time.monotonic()
        )
        raise TransportError(Outcome.DISCONNECTED, "it broke")

    assert (await run(script)).outcome is Outcome.OK


@pytest.mark.parametrize("is_delimited", [True, False])
async def test_an_end_without_a_finish_is_a_break_where_only_the_close_ends_the_body(
    is_delimited: bool,
) -> None:
    async def script(sink: ResponseSink) -> None:
        sink.on_head(200, is_delimited=is_delimited)
        say(sink, "a")

    expected = Outcome.CUT if is_delimited else Outcome.DISCONNECTED
    assert (await run(script)).outcome is expected


async def test_a_refusal_by_status_keeps_the_head_of_its_body_and_no_key() -> None:
    async def script(sink: ResponseSink) -> None:
        sink.on_head(401, is_delimited=True)
        assert not sink.on_data(b'{"error": "no such key: \x1b[31msk-1"}', time.monotonic())
        assert sink.on_data(b"x" * 70_000, time.monotonic()), "an error body has an end"
        raise TransportError(Outcome.DISCONNECTED, "it broke")

    exchange = await run(script, secrets=("sk-1",))
    assert exchange.outcome is Outcome.UNAUTHORIZED
    assert exchange.detail.startswith('HTTP 401 {"error": "no such key: [key]"}')
    assert exchange.record(None, None).output_tokens == 0


async def test_a_stream_that_falls_silent_has_stalled() -> None:
    began = time.monotonic()
    exchange = await run(forever, LoadPlan(output_tokens=2, timeout_s=20.0, stall_s=0.1))
    assert time.monotonic() - began < 5
    assert (exchange.outcome, exchange.detail) == (Outcome.STALLED, "no data for 0.1 s")
    assert exchange.record(0.0, None).output_tokens == 1


async def test_comments_do_not_keep_a_stalled_stream_alive() -> None:
    async def script(sink: ResponseSink) -> None:
        sink.on_head(200, is_delimited=True)
        say(sink, "a")
        while True:
            await asyncio.sleep(0.02)
            sink.on_data(b": keep-alive\n\n", time.monotonic())

    plan = LoadPlan(output_tokens=2, timeout_s=20.0, stall_s=0.15)
    assert (await run(script, plan)).outcome is Outcome.STALLED


async def test_a_slow_stream_does_not_stall_while_data_comes() -> None:
    async def script(sink: ResponseSink) -> None:
        sink.on_head(200, is_delimited=True)
        for _ in range(6):
            await asyncio.sleep(0.1)
            say(sink, "a")
        say(sink, "b", finish="stop")

    plan = LoadPlan(output_tokens=7, timeout_s=20.0, stall_s=0.4)
    assert (await run(script, plan)).outcome is Outcome.OK


@pytest.mark.parametrize("script", [silent, forever])
async def test_a_request_that_takes_too_long_times_out(script: Script) -> None:
    exchange = await run(script, LoadPlan(output_tokens=2, timeout_s=0.1, stall_s=10.0))
    assert (exchange.outcome, exchange.detail) == (Outcome.TIMEOUT, "not ended after 0.1 s")


async def test_a_server_that_queues_a_request_is_not_stalled() -> None:
    plan = LoadPlan(output_tokens=2, timeout_s=0.3, stall_s=0.05)
    assert (await run(silent, plan)).outcome is Outcome.TIMEOUT


async def test_a_cancelled_request_keeps_what_it_had() -> None:
    exchange = exchange_of()
    task = asyncio.create_task(exchange.run(ScriptedTransport(forever), b"{}"))
    while not exchange.answer.arrivals:
        await asyncio.sleep(0)
    exchange.cancel()
    await task
    record = exchange.record(exchange.sent_at, None)
    assert (record.outcome, record.detail) == (Outcome.CANCELLED, "cancelled")
    assert (record.output_tokens, record.tokens_in_window) == (1, 1)


async def test_a_request_that_is_cancelled_before_it_runs_is_never_sent() -> None:
    exchange, transport = exchange_of(), ScriptedTransport(quick)
    exchange.cancel()
    await exchange.run(transport, b"{}")
    assert exchange.outcome is Outcome.CANCELLED
    assert transport.bodies == []


async def test_a_cancel_from_outside_goes_through() -> None:
    task = asyncio.create_task(exchange_of().run(ScriptedTransport(silent), b"{}"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_answer_that_came_whole_has_no_time_per_token() -> None:
    async def script(sink: ResponseSink) -> None:
        sink.on_head(200, is_delimited=True)
        body = {
            "choices": [{"text": "a b", "finish_reason": "length"}],
            "usage": {"completion_tokens": 2},
        }
        sink.on_data(json.dumps(body).encode(), time.monotonic())

    record = (await run(script)).record(None, None)
    assert record.outcome is Outcome.OK
    assert record.ttft_s == record.e2e_s
    assert record.tpot_s is None
    assert "not as a stream" in record.detail
