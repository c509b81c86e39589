"""Conversations of several turns: each next prompt holds the answers that came before.

Who has waited longest speaks next; only when nobody waits does a new conversation begin. In a
closed loop there are as many conversations as requests in flight, in an open loop as many as
the server makes wait. A conversation whose answer failed is over: its history has a hole.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from gpu_dash.load.sse import EventReader, SseEvent, StreamTooLong
from gpu_dash.load.transport import ResponseSink, Transport


@dataclass
class Conversation:
    """What one user and the model have said so far."""

    number: int
    """Number of its first request."""
    position: int
    """Which of the prompts it began with."""
    turn: int = 0
    """The turn that is asked now, from 1."""
    messages: list[dict[str, str]] = field(default_factory=list)


class Conversations:
    """All conversations of one worker; begins, continues and ends them."""

    def __init__(self) -> None:
        self._waiting: deque[Conversation] = deque()

    def next_turn(self, request: int, position: int) -> Conversation:
        """The conversation that speaks next, in its next turn.

        Args:
            request: number of the request that will carry it.
            position: which prompt a new conversation would begin with.
        """
        conversation = self._waiting.popleft() if self._waiting else Conversation(request, position)
        conversation.turn += 1
        return conversation

    def answered(self, conversation: Conversation, text: str, *, turns: int) -> None:
        """Keep an answer; the conversation waits for its next turn, if it has one.

        Args:
            conversation: whose.
            text: what the model said.
            turns: how many turns it has.
        """
        conversation.messages.append({"role": "assistant", "content": text})
        if conversation.turn < turns:
            self._waiting.append(conversation)


class Transcribing:
    """A transport that keeps what was answered: one for each request, around the shared one.

    The answer's reader does not keep the text, for the sake of all the requests that nobody
    reads.

    Args:
        transport: the way to the server.
    """

    def __init__(self, transport: Transport) -> None:
        self.path = transport.path
        self._transport = transport
        self._pieces: list[bytes] = []

    async def post(self, body: bytes, sink: ResponseSink) -> None:
        """See :meth:`gpu_dash.load.transport.Transport.post`."""
        self._pieces.clear()
        await self._transport.post(body, _Tee(sink, self._pieces))

    async def close(self) -> None:
        """Nothing to close: the shared transport goes on."""

    def text(self) -> str:
        """What the model said in the first choice, without its reasoning."""
        reader = EventReader()
        try:
            events = [*reader.feed(b"".join(self._pieces), 0.0), *reader.end()]
        except StreamTooLong:
            return ""
        return "".join(_text_of(event) for event in events)


class _Tee:
    def __init__(self, sink: ResponseSink, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self._sink = sink
        self.on_sent = sink.on_sent
        self.on_head = sink.on_head

    def on_data(self, data: bytes, at: float) -> bool:
        self._pieces.append(data)
        return self._sink.on_data(data, at)


def _text_of(event: SseEvent) -> str:
    choices = event.value.get("choices") if event.value is not None else None
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            said = choice.get("delta") or choice.get("message")
            text = said.get("content") if isinstance(said, dict) else choice.get("text")
            return text if isinstance(text, str) else ""
    return ""
