"""The short way to a server that speaks plain HTTP: a protocol of our own on the event loop.

Between the socket and the stamp of a token there is nothing: ``data_received`` takes the moment
first, cuts the framing off (httptools, the parser of Node.js) and hands the body on. Nothing is
awaited until the answer has ended, so a read wakes no task. Compared with a client library that
is a quarter of the processor time for a token, which is what keeps the time to the first token
true with hundreds of streams on one core.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
import zlib
from typing import cast
from urllib.parse import urlsplit

import httptools

from gpu_dash.load.transport import (
    ENDPOINT_PATHS,
    KEEP_ALIVE_S,
    LINGER_S,
    ResponseSink,
    TransportError,
)
from gpu_dash.model.load import Endpoint, Outcome, Target

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class DirectTransport:
    """HTTP/1.1 over TCP, with as many connections as there are requests in flight.

    Args:
        target: where to: plain http, checked by :func:`gpu_dash.load.check.check_target`.
        endpoint: which of the two endpoints.
    """

    path = "direct"

    def __init__(self, target: Target, endpoint: Endpoint) -> None:
        url = urlsplit(target.base_url)
        assert url.hostname is not None
        self._host = url.hostname
        self._port = url.port or 80
        lines = [
            f"POST {url.path}{ENDPOINT_PATHS[endpoint]} HTTP/1.1",
            f"Host: {url.netloc.rpartition('@')[2]}",
            "Accept: */*",
            "Accept-Encoding: identity",
            "Content-Type: application/json",
        ]
        if target.api_key:
            lines.append(f"Authorization: Bearer {target.api_key}")
        lines += [f"{name}: {value}" for name, value in target.headers.pairs]
        self._head = "\r\n".join([*lines, "Content-Length: "]).encode("ascii")
        self._idle: list[_Connection] = []

    async def post(self, body: bytes, sink: ResponseSink) -> None:
        """See :meth:`gpu_dash.load.transport.Transport.post`."""
        connection = self._take_idle() or await self._connect()
        try:
            await connection.exchange(b"%s%d\r\n\r\n%s" % (self._head, len(body), body), sink)
        finally:
            if connection.is_reusable:
                self._idle.append(connection)
            else:
                connection.close()

    async def close(self) -> None:
        """See :meth:`gpu_dash.load.transport.Transport.close`."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _take_idle(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable and time.monotonic() < connection.idle_since + KEEP_ALIVE_S:
                return connection
            connection.close()
        return None

    async def _connect(self) -> _Connection:
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                _Connection, self._host, self._port
            )
        except OSError as error:
            raise TransportError(Outcome.REFUSED, _words(error)) from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection, one answer at a time; the callbacks of the parser are its own."""

    def __init__(self) -> None:
        self._socket: asyncio.Transport | None = None
        self._sink: ResponseSink | None = None
        self._ended: asyncio.Future[None] | None = None
        self._begin_answer()
        self.is_reusable = True
        self.idle_since = 0.0

    def _begin_answer(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._has_head = False
        self._is_delimited = False
        self._is_whole = False
        self._coding: zlib._Decompress | None = None

    async def exchange(self, request: bytes, sink: ResponseSink) -> None:
        """Send a request and wait for the end of the answer.

        Raises:
            TransportError: the answer broke off, or is no HTTP.
        """
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        self._begin_answer()
        self.is_reusable = False
        self._sink = sink
        self._ended = loop.create_future()
        sink.on_sent(time.monotonic())
        self._socket.write(request)
        try:
            await self._ended
        finally:
            self._sink = None
        if not self._is_whole:
            await self._linger(loop)
        self.idle_since = time.monotonic()

    async def _linger(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait a moment for the end of the body, so that the connection can serve the next
        request. Nothing that comes or breaks now changes the answer, which is whole."""
        self._ended = loop.create_future()
        timer = loop.call_later(LINGER_S, self._settle)
        await self._ended
        timer.cancel()

    def close(self) -> None:
        """Close it, whatever it does."""
        self.is_reusable = False
        if self._socket is not None:
            self._socket.abort()

    # -- what the event loop says --------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.Protocol`."""
        self._socket = cast("asyncio.Transport", transport)  # uvloop's is not derived from it

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        at = time.monotonic()
        broken = ""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            broken = "the server wants to leave HTTP"
        except httptools.HttpParserError as error:
            broken = str(error)
        if self._pieces:
            self._hand_on(at)
        if broken:
            self.is_reusable = False
            if not self._is_whole:
                self._settle(TransportError(Outcome.MALFORMED, f"not HTTP: {broken}"))
        elif self._is_whole:
            self._settle()

    def connection_lost(self, error: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        self.is_reusable = False
        if self._is_whole or (self._has_head and not self._is_delimited and error is None):
            self._settle()
        else:
            words = "the server closed the connection" if error is None else _words(error)
            self._settle(TransportError(Outcome.DISCONNECTED, words))

    # -- what the parser says ------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header came."""
        name = name.lower()
        if name in (b"content-length", b"transfer-encoding"):
            self._is_delimited = True
        elif name == b"content-encoding" and value.strip().lower() in (b"gzip", b"deflate"):
            self._coding = zlib.decompressobj(_GZIP_OR_ZLIB)

    def on_headers_complete(self) -> None:
        """The head is whole: of the answer, or of an interim one, which is none."""
        status = self._parser.get_status_code()
        self._has_head = status >= 200
        if not self._has_head:
            self._is_delimited = False
        elif self._sink is not None:
            self._sink.on_head(status, is_delimited=self._is_delimited)

    def on_body(self, piece: bytes) -> None:
        """A piece of the body came."""
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """The body has ended."""
        if self._has_head:
            self._is_whole = True
            self.is_reusable = self._parser.should_keep_alive()

    # -- what the exchange is told -------------------------------------------------------------

    def _hand_on(self, at: float) -> None:
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        if self._sink is None:
            return
        if self._coding is not None:
            try:
                body = self._coding.decompress(body)
            except zlib.error as error:
                words = f"content-encoding: {error}"
                self._settle(TransportError(Outcome.MALFORMED, words))
                return
        if self._sink.on_data(body, at):
            self._settle()

    def _settle(self, broken: TransportError | None = None) -> None:
        """The exchange need not wait any more."""
        if self._ended is None or self._ended.done():
            return
        if broken is not None and self._sink is not None:
            self._ended.set_exception(broken)
        else:
            self._ended.set_result(None)


def _words(error: Exception) -> str:
    """What the operating system says."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
