"""A small OpenAI-compatible server that does what a test tells it, in the test's own loop."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass
class Arrived:
    """One request as the server saw it."""

    at: float
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass
class LlmServer:
    """Streams ``tokens`` chunks a request, after ``ttft_s`` and ``gap_s`` apart.

    Change the fields at any time: the next request goes by them.
    """

    tokens: int | None = None
    """Tokens of an answer; what the request asks for if it is ``None``."""
    ttft_s: float = 0.0
    gap_s: float = 0.0
    failure: str = ""
    """``unauthorized``, ``stall``, ``silent``, ``disconnect`` or ``error``."""
    busy: int = 0
    """So many of the next requests are answered with 503."""
    url: str = ""
    arrived: list[Arrived] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a request arrives or ends."""
    _connections: set[asyncio.Task[Any]] = field(default_factory=set)

    async def until(self, in_flight: int) -> float:
        """Wait until exactly so many requests are in flight; returns the moment."""
        while self.in_flight != in_flight:
            self.changed.clear()
            await self.changed.wait()
        return time.monotonic()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._answer_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass  # the server closes; Python 3.11 complains about a handler that was cancelled
        finally:
            self._connections.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        fields = (line.split(": ", 1) for line in head.split("\r\n")[1:-2])
        headers = {name.lower(): value for name, value in fields}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.arrived.append(Arrived(time.monotonic(), body, headers))
        self._count(+1)
        try:
            return await self._answer(reader, writer, body)
        finally:
            self._count(-1)

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: dict[str, Any]
    ) -> bool:
        """Whether the connection may serve another request."""
        failure = self.failure
        if failure == "silent":
            await reader.read()
            return False
        if failure == "unauthorized":
            key = self.arrived[-1].headers.get("authorization", "")
            page = json.dumps({"error": f"no such key: {key}\x1b[31m"}).encode()
            writer.write(
                b"HTTP/1.1 401 Unauthorized\r\ncontent-length: %d\r\n\r\n%s" % (len(page), page)
            )
            return True
        if self.busy:
            self.busy -= 1
            writer.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 8\r\n\r\ncome bye")
            return True
        writer.write(_HEAD)
        tokens = self.tokens if self.tokens is not None else body["max_tokens"]
        await asyncio.sleep(self.ttft_s)
        for number in range(tokens):
            if number:
                await asyncio.sleep(self.gap_s)
            last = number == tokens - 1
            said = {"delta": {"content": " a"}} if "messages" in body else {"text": " a"}
            choice = {"index": 0, **said, "finish_reason": "length" if last else None}
            _write_event(writer, {"choices": [choice]})
            await writer.drain()
            if failure and number == tokens // 2:
                break
        match failure:
            case "stall":
                await reader.read()
                return False
            case "disconnect":
                return False
            case "error":
                _write_event(writer, {"error": {"message": "out of memory"}})
            case _:
                usage = {"prompt_tokens": len(body.get("prompt", [])), "completion_tokens": tokens}
                _write_event(writer, {"choices": [], "usage": usage})
        _write_chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _count(self, change: int) -> None:
        self.in_flight += change
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.changed.set()


def _write_event(writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
    _write_chunk(writer, b"data: %s\n\n" % json.dumps(value).encode())


def _write_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


@asynccontextmanager
async def llm_server() -> AsyncIterator[LlmServer]:
    """A server on a free port of the loopback, until the block ends."""
    llm = LlmServer()
    server = await asyncio.start_server(llm.serve, "127.0.0.1", 0)
    llm.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield llm
    finally:
        server.close()
        for task in llm._connections:
            task.cancel()
        await asyncio.gather(*llm._connections, return_exceptions=True)
