"""HTTP/1.1 on asyncio, as much as an OpenAI client needs: keep-alive, bodies by length, streams.

No coroutine per request and no task per stream: a handler is called with the request and answers
when it likes through its :class:`Response`, so that one engine step can write to hundreds of
streams in one go.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus

_LONGEST_HEAD_BYTES = 64 * 1024
_LONGEST_BODY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read whole."""

    method: str
    path: str
    """Without the query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    peer: str
    """The client's address as ``host:port``."""


class Response:
    """The answer to one request: :meth:`send` it whole, or open a stream and write to it."""

    def __init__(self, connection: Connection, request: Request) -> None:
        self.request = request
        self.on_disconnect: Callable[[], None] | None = None
        """Called once if the client goes away before the answer is complete."""
        self._connection = connection

    def send(
        self, status: int, body: bytes = b"", headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        """Answer with a whole body."""
        length = ("content-length", str(len(body)))
        self._connection.write(self._head(status, (length, *headers)) + body)
        self._connection.complete(self)

    def start_stream(self, content_type: str) -> None:
        """Answer 200 and leave the body open."""
        headers = (("content-type", content_type), ("transfer-encoding", "chunked"))
        self._connection.write(self._head(HTTPStatus.OK, headers))

    def write(self, data: bytes) -> None:
        """Send a piece of an open stream."""
        self._connection.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self, data: bytes = b"") -> None:
        """Send the last piece of an open stream, and complete the answer."""
        last = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        self._connection.write(last + b"0\r\n\r\n")
        self._connection.complete(self)

    def _head(self, status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
        self._connection.announce(self.request, status)
        date = formatdate(usegmt=True)
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"date: {date}"]
        lines += ["server: uvicorn", *(f"{name}: {value}" for name, value in headers)]
        return "\r\n".join([*lines, "", ""]).encode()


Handler = Callable[[Request, Response], None]
Observer = Callable[[Request, int], None]


class _BadRequest(Exception):
    """What a client sent is no request that this server reads."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class Connection(asyncio.Protocol):
    """One client: reads requests one after the other, the next when the last is answered."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self.transport: asyncio.Transport | None = None
        """The client's, until it is gone."""
        self._peer = ""
        self._open_response: Response | None = None
        self._told_to_continue = False
        self._last_request = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        host, port = transport.get_extra_info("peername")[:2]
        self._peer = f"{host}:{port}"
        self._server.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._open_response is None:
            self._read_requests()
        elif len(self._buffer) > _LONGEST_BODY_BYTES:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._server.connections.discard(self)
        response, self._open_response = self._open_response, None
        if response is not None and response.on_disconnect is not None:
            response.on_disconnect()

    def write(self, data: bytes) -> None:
        """Send bytes, if the client is still there."""
        if self.transport is not None:
            self.transport.write(data)

    def announce(self, request: Request, status: int) -> None:
        """An answer begins."""
        self._server.observer(request, status)

    def complete(self, response: Response) -> None:
        """An answer is complete; the next request may be read."""
        if self._open_response is response:
            self._open_response = None
            if self._last_request:
                self.close()
            elif self._buffer:
                asyncio.get_running_loop().call_soon(self._read_requests)

    def close(self) -> None:
        """Send what is written and close."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()

    def _read_requests(self) -> None:
        while self.transport is not None and self._open_response is None:
            try:
                request = self._next_request()
            except _BadRequest as error:
                self.write(_refusal(error.status))
                self.close()
                return
            if request is None:
                return
            self._last_request = request.headers.get("connection", "").lower() == "close"
            self._told_to_continue = False
            self._open_response = Response(self, request)
            self._server.handler(request, self._open_response)

    def _next_request(self) -> Request | None:
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            if len(self._buffer) > _LONGEST_HEAD_BYTES:
                raise _BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return None
        method, path, headers = _parse_head(bytes(self._buffer[:head_end]))
        length = _body_length(headers)
        body_start = head_end + 4
        if len(self._buffer) < body_start + length:
            waits = headers.get("expect", "").lower() == "100-continue"
            if waits and not self._told_to_continue:
                self._told_to_continue = True
                self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return None
        body = bytes(self._buffer[body_start : body_start + length])
        del self._buffer[: body_start + length]
        return Request(method, path, headers, body, self._peer)


class HttpServer:
    """The connections of one listening socket."""

    def __init__(self, handler: Handler, observer: Observer) -> None:
        self.handler = handler
        self.observer = observer
        """Told of each answer when it begins, with its status."""
        self.connections: set[Connection] = set()

    def connect(self) -> Connection:
        """A protocol for a new connection."""
        return Connection(self)


def take_port(host: str, port: int) -> socket.socket:
    """Take a port without listening on it, as vLLM does: clients are refused until it is ready.

    Raises:
        OSError: somebody listens there, or the host is none of this machine's.
    """
    # With the protocol named, asyncio turns Nagle's algorithm off on each connection: a token
    # would wait up to 40 ms for the client to acknowledge the one before.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


def _refusal(status: HTTPStatus) -> bytes:
    text = status.phrase.encode()
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n%b" % (len(text), text)


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    request_line, *header_lines = head.decode("latin-1").split("\r\n")
    try:
        method, target, version = request_line.split(" ")
        pairs = [line.split(":", 1) for line in header_lines]
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
    except ValueError:
        raise _BadRequest(HTTPStatus.BAD_REQUEST) from None
    if version != "HTTP/1.1":
        raise _BadRequest(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    return method, target.partition("?")[0], headers


def _body_length(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise _BadRequest(HTTPStatus.LENGTH_REQUIRED)
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise _BadRequest(HTTPStatus.BAD_REQUEST)
    length = int(text)
    if length > _LONGEST_BODY_BYTES:
        raise _BadRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return length
