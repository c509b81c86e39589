"""A server that knows what it did: ``python -m gpu_dash.load.mock_server``.

It answers completions with tokens at even intervals, and keeps the time to the first token and
the gaps as it sent them, by its own clock: the truth that a client's figures are held against.
Its first line on stdout is its port on the loopback; it ends when stdin closes. ``GET /truth``
tells what it did since the last such request, as histograms, and begins anew.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from array import array

import msgspec

from gpu_dash.load.exchange import gaps_between
from gpu_dash.load.worker import loop_factory
from gpu_dash.model.histogram import Histogram

TTFT_S = 0.1
GAP_S = 0.01

_END_OF_HEAD = b"\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Truth(msgspec.Struct):
    """What the server did."""

    ttft: dict[int, int]
    """Last byte of a request read to first token sent: bucket of the histogram to count."""
    gaps: dict[int, int]
    """Token sent to next token sent."""


class MockServer:
    """Takes connections, and keeps the truth about all of them."""

    def __init__(self) -> None:
        self._ttft = Histogram()
        self._gaps = Histogram()

    def note(self, asked_at: float, sent_at: array[float]) -> None:
        """An answer was sent.

        Args:
            asked_at: when its request was whole.
            sent_at: when each of its tokens was about to be sent.
        """
        self._ttft.add(sent_at[0] - asked_at)
        self._gaps.add_all(gaps_between(sent_at))

    def tell(self) -> Truth:
        """What was done since this was asked last."""
        told = Truth(ttft=dict(self._ttft.counts), gaps=dict(self._gaps.counts))
        self._ttft, self._gaps = Histogram(), Histogram()
        return told


class MockConnection(asyncio.Protocol):
    """One connection: a request at a time.

    Args:
        server: whose it is.
    """

    def __init__(self, server: MockServer) -> None:
        self._server = server
        self._received = b""
        self._asked_at = 0.0
        self._tokens = 0
        self._sent_at = array("d")
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.Protocol`."""
        self._socket: asyncio.Transport = transport  # type: ignore[assignment]

    def connection_lost(self, error: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        self._received += data
        head, end, body = self._received.partition(_END_OF_HEAD)
        if not end or len(body) < _content_length(head):
            return
        self._received = b""
        if head.startswith(b"GET /truth"):
            page = msgspec.json.encode(self._server.tell())
            self._socket.write(
                b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(page), page)
            )
            return
        self._asked_at = time.monotonic()
        self._tokens = json.loads(body)["max_tokens"]
        self._sent_at = array("d")
        self._socket.write(_HEAD)
        self._send_at(self._asked_at + TTFT_S)

    def _send_at(self, due_at: float) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, due_at - time.monotonic()), self._send, due_at)

    def _send(self, due_at: float) -> None:
        self._sent_at.append(time.monotonic())
        is_last = len(self._sent_at) == self._tokens
        choice = {"index": 0, "text": " token", "finish_reason": "length" if is_last else None}
        self._write_event({"id": "cmpl-1", "object": "text_completion", "choices": [choice]})
        if not is_last:
            self._send_at(due_at + GAP_S)
            return
        self._server.note(self._asked_at, self._sent_at)
        usage = {"prompt_tokens": 1, "completion_tokens": self._tokens}
        self._write_event(
            {"id": "cmpl-1", "object": "text_completion", "choices": [], "usage": usage}
        )
        self._socket.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    def _write_event(self, value: dict[str, object]) -> None:
        event = b"data: %s\n\n" % msgspec.json.encode(value)
        self._socket.write(b"%x\r\n%s\r\n" % (len(event), event))


def main() -> None:
    """Serve until stdin closes."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve())


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    truth = MockServer()
    server = await loop.create_server(lambda: MockConnection(truth), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 (its starter reads it)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


if __name__ == "__main__":
    main()
