"""Every answer of ``tests/data/sse`` through the real client: outcome, tokens, time to the first.

The cases are played side by side in one event loop, which is also the server's: between two of
its writes the client has read the first, so each token can be told to belong to a read.
"""

from __future__ import annotations

import asyncio
import base64
import http
import json
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gpu_dash.load.direct_transport import DirectTransport
from gpu_dash.load.exchange import Exchange
from gpu_dash.load.httpx_transport import HttpxTransport
from gpu_dash.load.prompt import RequestBodies
from gpu_dash.model.load import Endpoint, LoadPlan, Outcome, Target

DATA = Path(__file__).parents[1] / "data" / "sse"
CASES: dict[str, dict[str, Any]] = {
    case["id"]: case for case in map(json.loads, (DATA / "cases.jsonl").read_bytes().splitlines())
}
Way = type[DirectTransport] | type[HttpxTransport]
WAYS: tuple[Way, ...] = (DirectTransport, HttpxTransport)
SIDE_BY_SIDE = 24
BREATH_S = 0.002
"""Between writes without a delay, so that they stay apart on the loopback."""
TELLING_DELAY_MS = 20
"""A read that comes so much later than the one before is told apart from it for certain."""


class Player:
    """Answers each request with the case that its path names, and notes when it wrote what."""

    def __init__(self) -> None:
        self.written_at: dict[str, list[float]] = {name: [] for name in CASES}
        self.connections: set[asyncio.Task[Any]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one case."""
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
            await reader.readexactly(int(fields["content-length"]))
            await self._play(CASES[head.split(" ")[1].split("/")[2]], reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def _play(
        self, case: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        response = case["response"]
        if response["status"] is not None:
            writer.write(_head(response))
            await writer.drain()
        for delay_ms, data in response["reads"]:
            await asyncio.sleep(delay_ms / 1000 or BREATH_S)
            self.written_at[case["id"]].append(time.monotonic())
            writer.write(base64.b64decode(data))
            await writer.drain()
        match response["then"]:
            case "reset":
                await asyncio.sleep(0.02)
                connection = writer.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            case "stall" | "keep-alive":
                await reader.read()


def _head(response: dict[str, Any]) -> bytes:
    status = response["status"]
    reason = http.HTTPStatus(status).phrase if status in list(http.HTTPStatus) else ""
    lines = [f"HTTP/{response.get('http', '1.1')} {status} {reason}"]
    lines += [f"{name}: {value}" for name, value in response["headers"].items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


@contextmanager
def a_port_without_a_listener() -> Iterator[int]:
    with socket.socket() as shut:
        shut.bind(("127.0.0.1", 0))
        yield shut.getsockname()[1]


async def _ask(case: dict[str, Any], port: int, way: Way) -> Exchange:
    limits = case.get("client") or {}
    plan = LoadPlan(
        endpoint=Endpoint(case["request"]["endpoint"]),
        output_tokens=case["request"]["max_tokens"],
        stall_s=limits.get("stall_ms", 5000) / 1000,
        timeout_s=limits.get("timeout_ms", 15000) / 1000,
        prompt_tokens=4,
    )
    target = Target(base_url=f"http://127.0.0.1:{port}/case/{case['id']}", model="acme/model-7b")
    transport = way(target, plan.endpoint)
    exchange = Exchange(request=1, step=1, concurrency=1, plan=plan)
    if "cancel_after_ms" in limits:
        asyncio.get_running_loop().call_later(limits["cancel_after_ms"] / 1000, exchange.cancel)
    await exchange.run(transport, RequestBodies("acme/model-7b", plan).make(1))
    await transport.close()
    return exchange


async def _play_all(way: Way) -> tuple[dict[str, Exchange], dict[str, list[float]]]:
    player = Player()
    server = await asyncio.start_server(player.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    turns = asyncio.Semaphore(SIDE_BY_SIDE)

    async def play(case: dict[str, Any], shut_port: int) -> Exchange:
        async with turns:
            is_shut = case["response"].get("transport") == "no-listener"
            return await _ask(case, shut_port if is_shut else port, way)

    with a_port_without_a_listener() as shut_port:
        exchanges = await asyncio.gather(*(play(case, shut_port) for case in CASES.values()))
    server.close()
    await asyncio.gather(*player.connections)
    return dict(zip(CASES, exchanges, strict=True)), player.written_at


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: way.path)
def played(request: pytest.FixtureRequest) -> tuple[dict[str, Exchange], dict[str, list[float]]]:
    """All cases, played once: most of their time is waiting."""
    return asyncio.run(_play_all(request.param))


@pytest.mark.parametrize("name", CASES)
def test_a_case_comes_out_right(
    name: str, played: tuple[dict[str, Exchange], dict[str, list[float]]]
) -> None:
    exchanges, written_at = played
    exchange, expected = exchanges[name], CASES[name]["expect"]
    record = exchange.record(None, None)

    assert record.outcome == expected["outcome"], record.detail
    if record.outcome is Outcome.CANCELLED:
        return
    assert record.prompt_tokens == expected["prompt_tokens"]
    if expected["output_tokens"] is not None:
        assert record.output_tokens == expected["output_tokens"]
        assert not record.usage_missing
    else:
        assert record.usage_missing is bool(expected["token_reads"])
    assert exchange.answer.finish_reason == expected["finish_reason"]
    _check_moments(exchange, expected["token_reads"], written_at[name], CASES[name])


def _check_moments(
    exchange: Exchange, token_reads: list[int], written_at: list[float], case: dict[str, Any]
) -> None:
    """Each read that brings tokens brought them when it was written, and no other did."""
    reads_seen = sorted({_read_of(at, written_at) for at in exchange.arrivals})
    delays_ms = [delay for delay, _ in case["response"]["reads"]]
    told_apart = [read for read in token_reads if read == 0 or delays_ms[read] >= TELLING_DELAY_MS]
    assert set(told_apart) <= set(reads_seen)
    assert len(reads_seen) <= len(token_reads)
    ttft_s = exchange.record(None, None).ttft_s
    if not token_reads:
        assert ttft_s is None
        return
    assert ttft_s is not None
    late_s = exchange.sent_at + ttft_s - written_at[token_reads[0]]
    assert 0 <= late_s < 0.5
    if token_reads[0] + 1 < len(delays_ms) and delays_ms[token_reads[0] + 1] >= TELLING_DELAY_MS:
        assert exchange.sent_at + ttft_s < written_at[token_reads[0] + 1]


def _read_of(at: float, written_at: list[float]) -> int:
    """The newest read that had been written by this moment."""
    return max(index for index, written in enumerate(written_at) if written <= at)
