"""A transport that plays what a test writes down, at the moments it says."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

from gpu_dash.load.transport import ResponseSink, TransportError
from gpu_dash.model.load import Outcome

Script = Callable[[ResponseSink], Awaitable[None]]


class ScriptedTransport:
    """Plays one script for each request."""

    path = "scripted"

    def __init__(self, script: Script) -> None:
        self.script = script
        self.bodies: list[bytes] = []
        self.is_closed = False

    async def post(self, body: bytes, sink: ResponseSink) -> None:
        """Play the script."""
        self.bodies.append(body)
        sink.on_sent(time.monotonic())
        await self.script(sink)

    async def close(self) -> None:
        """Note that it was closed."""
        self.is_closed = True


def say(sink: ResponseSink, *texts: str, finish: str | None = None, usage: int = 0) -> None:
    """Send text chunks, and with a finish reason the end of the answer."""
    chunks: list[dict[str, object]] = [{"choices": [{"index": 0, "text": text}]} for text in texts]
    if finish:
        chunks[-1:] = [{"choices": [{"index": 0, "text": texts[-1], "finish_reason": finish}]}]
    if usage:
        chunks.append({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": usage}})
    for chunk in chunks:
        sink.on_data(f"data: {json.dumps(chunk)}\n\n".encode(), time.monotonic())
    if finish:
        sink.on_data(b"data: [DONE]\n\n", time.monotonic())


async def quick(sink: ResponseSink) -> None:
    """A whole answer of two tokens."""
    sink.on_head(200, is_delimited=True)
    await asyncio.sleep(0)
    say(sink, "a", "b", finish="length", usage=2)


async def forever(sink: ResponseSink) -> None:
    """An answer that begins and then hangs."""
    sink.on_head(200, is_delimited=True)
    say(sink, "a")
    await asyncio.Event().wait()


async def silent(sink: ResponseSink) -> None:
    """A server that takes the request and says nothing."""
    await asyncio.Event().wait()


def broken(outcome: Outcome, *texts: str) -> Script:
    """An exchange that breaks after these chunks."""

    async def script(sink: ResponseSink) -> None:
        sink.on_head(200, is_delimited=True)
        await asyncio.sleep(0)
        if texts:
            say(sink, *texts)
        raise TransportError(outcome, "it broke")

    return script
