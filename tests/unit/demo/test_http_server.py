"""HTTP/1.1 as clients really speak it, over a socket of this process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from gpu_dash.demo.http_server import HttpServer, Request, Response, take_port

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Desk:
    """Answers with the request's body, or leaves an answer open for the test to finish."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.open: list[Response] = []
        self.answers: list[int] = []
        self.gone = asyncio.Event()
        self.server: HttpServer | None = None

    def handle(self, request: Request, response: Response) -> None:
        self.requests.append(request)
        if request.path == "/open":
            response.start_stream("text/plain")
            response.on_disconnect = self.gone.set
            self.open.append(response)
        else:
            response.send(200, request.body)

    def observe(self, request: Request, status: int) -> None:
        self.answers.append(status)


@pytest.fixture
async def desk() -> Desk:
    return Desk()


@pytest.fixture
async def client(desk: Desk) -> AsyncIterator[Client]:
    server = HttpServer(desk.handle, desk.observe)
    listener = take_port("127.0.0.1", 0)
    listening = await asyncio.get_running_loop().create_server(server.connect, sock=listener)
    desk.server = server
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    yield reader, writer
    writer.close()
    await writer.wait_closed()
    listening.close()
    await listening.wait_closed()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    length = next(int(line[16:]) for line in lines if line.startswith("content-length: "))
    return int(lines[0].split()[1]), await reader.readexactly(length)


def post(body: bytes, path: str = "/echo", headers: str = "") -> bytes:
    return (
        f"POST {path}?query HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    ).encode() + body


async def test_a_connection_takes_one_request_after_the_other(client: Client, desk: Desk) -> None:
    reader, writer = client
    for text in (b"one", b"two"):
        writer.write(post(text))
        assert await read_answer(reader) == (200, text)
    assert [request.path for request in desk.requests] == ["/echo", "/echo"]
    assert desk.requests[0].headers["host"] == "x"
    assert desk.requests[0].peer.startswith("127.0.0.1:")
    assert desk.answers == [200, 200]


async def test_no_token_waits_for_the_one_before_to_be_acknowledged(
    client: Client, desk: Desk
) -> None:
    reader, writer = client
    writer.write(post(b"here"))
    await read_answer(reader)
    assert desk.server is not None
    (connection,) = desk.server.connections
    assert connection.transport is not None
    ours = connection.transport.get_extra_info("socket")
    assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_requests_sent_at_once_are_answered_in_their_order(client: Client) -> None:
    reader, writer = client
    writer.write(post(b"one") + post(b"two") + post(b"three"))
    assert [(await read_answer(reader))[1] for _ in range(3)] == [b"one", b"two", b"three"]


async def test_a_request_may_come_in_single_bytes(client: Client) -> None:
    reader, writer = client
    for byte in post(b"slow"):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    assert await read_answer(reader) == (200, b"slow")


async def test_a_client_that_waits_to_be_told_is_told_once(client: Client) -> None:
    reader, writer = client
    head, body = post(b"body", headers="Expect: 100-continue\r\n").split(b"\r\n\r\n")
    writer.write(head + b"\r\n\r\n")
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(body)
    assert await read_answer(reader) == (200, b"body")


async def test_a_stream_is_chunked_and_the_next_request_waits_for_its_end(
    client: Client, desk: Desk
) -> None:
    reader, writer = client
    writer.write(post(b"", "/open") + post(b"next"))
    assert b"transfer-encoding: chunked" in await reader.readuntil(b"\r\n\r\n")
    assert len(desk.requests) == 1
    desk.open[0].write(b"some text")
    assert await reader.readuntil(b"text\r\n") == b"9\r\nsome text\r\n"
    desk.open[0].end_stream(b"end")
    assert await reader.readuntil(b"0\r\n\r\n") == b"3\r\nend\r\n0\r\n\r\n"
    assert await read_answer(reader) == (200, b"next")


async def test_a_client_that_leaves_in_the_middle_is_noticed(client: Client, desk: Desk) -> None:
    reader, writer = client
    writer.write(post(b"", "/open"))
    await reader.readuntil(b"\r\n\r\n")
    writer.close()
    await asyncio.wait_for(desk.gone.wait(), 5)
    desk.open[0].write(b"nobody reads this")
    desk.open[0].end_stream()


async def test_a_client_that_leaves_after_the_end_is_none_of_anybodys_business(
    client: Client, desk: Desk
) -> None:
    reader, writer = client
    writer.write(post(b"", "/open", headers="Connection: close\r\n"))
    await reader.readuntil(b"\r\n\r\n")
    desk.open[0].end_stream()
    assert await reader.read() == b"0\r\n\r\n"
    assert not desk.gone.is_set()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.0\r\n\r\n", 505),
        (b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, 431),
    ],
)
async def test_what_is_no_request_is_refused_and_the_connection_closed(
    client: Client, desk: Desk, sent: bytes, status: int
) -> None:
    reader, writer = client
    writer.write(sent)
    got, _ = await read_answer(reader)
    assert got == status
    assert await reader.read() == b""
    assert desk.requests == []
