"""The seam between a request and the wire.

A transport pushes what happens into a :class:`ResponseSink`, read by read, so that the stamp of a
token is taken where its bytes arrive and nothing has to be awaited in between.
"""

from __future__ import annotations

from typing import Protocol

from gpu_dash.model.load import Endpoint, Outcome

ENDPOINT_PATHS = {
    Endpoint.COMPLETIONS: "/v1/completions",
    Endpoint.CHAT: "/v1/chat/completions",
}
KEEP_ALIVE_S = 3.0
"""An idle connection is not used again after this; uvicorn, and so vLLM, drops it after 5 s."""
LINGER_S = 0.25
"""How long the end of the body may follow the last event before the connection is given up."""


class TransportError(Exception):
    """The exchange broke before the body ended.

    Args:
        outcome: ``refused``, ``disconnected``, ``malformed`` or ``bad_request``.
        detail: what happened, in words.
    """

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail


class ResponseSink(Protocol):
    """What an exchange is told while it runs. All stamps are monotonic."""

    def on_sent(self, at: float) -> None:
        """The first byte of the request is about to go to the socket."""
        ...

    def on_head(self, status: int, *, is_delimited: bool) -> None:
        """The status came.

        Args:
            status: the HTTP status.
            is_delimited: the body says where it ends, so that a closed connection before that is
                a broken one.
        """
        ...

    def on_data(self, data: bytes, at: float) -> bool:
        """Bytes of the body, content coding removed; true when no more of it is needed."""
        ...


class Transport(Protocol):
    """Sends requests to one endpoint of one target."""

    path: str
    """Name of this way to the server, for the screen."""

    async def post(self, body: bytes, sink: ResponseSink) -> None:
        """Send one request and return when its body has ended, or when the sink has enough.

        Raises:
            TransportError: the exchange broke before.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
