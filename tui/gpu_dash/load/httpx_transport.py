"""The way to the server through httpx."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio.lowlevel
import httpx

from gpu_dash.load.route import proxy_for
from gpu_dash.load.transport import (
    ENDPOINT_PATHS,
    KEEP_ALIVE_S,
    LINGER_S,
    ResponseSink,
    TransportError,
)
from gpu_dash.model.load import Endpoint, Outcome, Target


async def load_ahead() -> None:
    """Load what httpx otherwise loads during the first request (0.1 s)."""
    await anyio.lowlevel.checkpoint()
    await httpx.AsyncHTTPTransport(verify=False, trust_env=False).aclose()


class HttpxTransport:
    """HTTP/1.1 by httpx, with as many connections as there are requests in flight.

    Each connection is an :class:`httpx.AsyncHTTPTransport` of its own: a shared pool looks at all
    of its connections for each request, which at 256 of them takes longer than the request. It
    has no time-outs: the exchange knows when it has waited long enough, and cancels.

    Args:
        target: where to, checked by :func:`gpu_dash.load.check.check_target`; the key goes into a
            header and nowhere else.
        endpoint: which of the two endpoints.
    """

    path = "httpx"

    def __init__(self, target: Target, endpoint: Endpoint) -> None:
        self._url = httpx.URL(target.base_url + ENDPOINT_PATHS[endpoint])
        self._headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if target.api_key:
            self._headers["authorization"] = f"Bearer {target.api_key}"
        self._headers |= dict(target.headers.pairs)
        self._proxy = proxy_for(str(self._url))
        # loading the certificates takes longer than all the rest
        needs_tls = self._url.scheme == "https" or self._proxy is not None
        self._tls = httpx.create_ssl_context(verify=needs_tls)
        self._idle: list[httpx.AsyncHTTPTransport] = []

    async def post(self, body: bytes, sink: ResponseSink) -> None:
        """See :meth:`gpu_dash.load.transport.Transport.post`."""

        async def note(event: str, _info: dict[str, Any]) -> None:
            if event.endswith("send_request_headers.started"):
                sink.on_sent(time.monotonic())

        request = httpx.Request(
            "POST", self._url, headers=self._headers, content=body, extensions={"trace": note}
        )
        connection = self._idle.pop() if self._idle else self._connect()
        try:
            response = await connection.handle_async_request(request)
            try:
                sink.on_head(
                    response.status_code,
                    is_delimited="content-length" in response.headers
                    or "transfer-encoding" in response.headers,
                )
                chunks = response.aiter_bytes()
                async for chunk in chunks:
                    if sink.on_data(chunk, time.monotonic()):
                        await _linger(chunks)
                        break
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            raise _translate(error) from error
        finally:
            self._idle.append(connection)

    async def close(self) -> None:
        """See :meth:`gpu_dash.load.transport.Transport.close`."""
        for connection in self._idle:
            await connection.aclose()

    def _connect(self) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(
            verify=self._tls,
            trust_env=False,
            proxy=self._proxy,
            limits=httpx.Limits(max_connections=1, keepalive_expiry=KEEP_ALIVE_S),
        )


async def _linger(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of the body, so that the connection can serve the next request.

    Nothing that comes or breaks now changes the answer, which is whole.
    """
    try:
        async with asyncio.timeout(LINGER_S):
            async for _ in chunks:
                pass
    except (TimeoutError, httpx.HTTPError):
        pass


def _translate(error: httpx.HTTPError) -> TransportError:
    """The outcome that one of httpx's exceptions stands for."""
    match error:
        case httpx.ConnectError() | httpx.ProxyError() | httpx.UnsupportedProtocol():
            return TransportError(Outcome.REFUSED, _root_words(error))
        case httpx.LocalProtocolError():
            # its message may hold a header, and so the key
            return TransportError(Outcome.BAD_REQUEST, "the URL or the key cannot be sent")
        case httpx.RemoteProtocolError() if not _is_a_close(error):
            return TransportError(Outcome.MALFORMED, f"not HTTP: {error}")
        case httpx.DecodingError():
            return TransportError(Outcome.MALFORMED, f"content-encoding: {error}")
        case _:
            return TransportError(Outcome.DISCONNECTED, _root_words(error))


def _is_a_close(error: httpx.RemoteProtocolError) -> bool:
    """The other side closed in the middle, as opposed to saying something that is not HTTP."""
    words = str(error)
    return "closed connection" in words or "disconnected" in words


def _root_words(error: BaseException) -> str:
    """The words of the operating system, where they are behind httpx's own."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
