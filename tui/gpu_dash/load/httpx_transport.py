"""The way to the server through httpx."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio.lowlevel
import httpx

from gpu_dash.load.transport import ResponseSink, TransportError
from gpu_dash.model.load import Endpoint, Outcome, Target

_PATHS = {Endpoint.COMPLETIONS: "/v1/completions", Endpoint.CHAT: "/v1/chat/completions"}

_KEEP_ALIVE_S = 3.0
"""An idle connection is not used again after this; uvicorn, and so vLLM, drops it after 5 s."""
_LINGER_S = 0.25
"""How long the end of the body may follow the last event before the connection is given up."""


async def load_ahead() -> None:
    """Load what httpx otherwise loads during the first request (50 ms)."""
    await anyio.lowlevel.checkpoint()


class HttpxTransport:
    """HTTP/1.1 by an :class:`httpx.AsyncClient`, with as many connections as requests.

    It has no time-outs of its own: the exchange knows when it has waited long enough, and cancels.

    Args:
        target: where to, checked by :func:`gpu_dash.load.check.check_target`; the key goes into
            a header and nowhere else.
        endpoint: which of the two endpoints.
    """

    path = "httpx"

    def __init__(self, target: Target, endpoint: Endpoint) -> None:
        self._url = target.base_url + _PATHS[endpoint]
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if target.api_key:
            headers["authorization"] = f"Bearer {target.api_key}"
        is_local = _is_loopback(httpx.URL(target.base_url).host)
        self._client = httpx.AsyncClient(
            headers=headers,
            timeout=None,
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=None,
                keepalive_expiry=_KEEP_ALIVE_S,
            ),
            # a proxy in the environment is not for this host
            trust_env=not is_local,
            # loading the certificates takes longer than all the rest
            verify=not is_local or target.base_url.startswith("https:"),
        )

    async def post(self, body: bytes, sink: ResponseSink) -> None:
        """See :meth:`gpu_dash.load.transport.Transport.post`."""

        async def note(event: str, _info: dict[str, Any]) -> None:
            if event.endswith("send_request_headers.started"):
                sink.on_sent(time.monotonic())

        request = self._client.build_request(
            "POST", self._url, content=body, extensions={"trace": note}
        )
        try:
            response = await self._client.send(request, stream=True)
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

    async def close(self) -> None:
        """See :meth:`gpu_dash.load.transport.Transport.close`."""
        await self._client.aclose()


async def _linger(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of the body, so that the connection can serve the next request.

    Nothing that comes or breaks now changes the answer, which is whole.
    """
    try:
        async with asyncio.timeout(_LINGER_S):
            async for _ in chunks:
                pass
    except (TimeoutError, httpx.HTTPError):
        pass


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
