"""What a stream of events says: tokens with their moments, usage, the reason for its end.

Definitions: TTFT ends at the first chunk that carries a token; an empty role chunk carries none.
Text, reasoning and tool calls are tokens. The number of output tokens is the server's ``usage``;
without it, chunks that carry a token are counted.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Any

from gpu_dash.load.sse import EventReader, SseEvent, StreamTooLong
from gpu_dash.load.template import ChunkTemplate, learn_template

_TOKEN_FIELDS = (
    "content",
    "reasoning_content",
    "reasoning",
    "thinking",
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
)
"""Fields of a ``delta`` or ``message`` that hold what the model wrote."""

_LENGTH = "length"
_END_OF_EVENT = b"\n\n"


class Answer:
    """Reads the body of one answer, chunk by chunk, as it arrives."""

    def __init__(self) -> None:
        self._reader = EventReader()
        self._template: ChunkTemplate | None = None
        self._expected: ChunkTemplate | None = None
        """The template, while the next byte begins an event of an answer that goes on."""
        self._quiet = array("d")
        """Stamps of chunks with an empty text, between the first token and the end."""
        self._quiet_is_last = False
        self._finish_reasons: dict[int, str] = {}
        self._choices: set[int] = set()
        self.arrivals = array("d")
        """Stamps of the chunks that carry a token, in order."""
        self.has_choices = False
        self.prompt_tokens: int | None = None
        self.usage_tokens: int | None = None
        """``completion_tokens`` of the newest usage."""
        self.error: str | None = None
        """What an error inside the answer says."""
        self.complaint = ""
        """The same, when the body is that error and nothing else: an answer without choices."""
        self.malformed: str | None = None
        """The first data that cannot be read."""
        self.is_done = False
        """``[DONE]`` came."""
        self.is_streamed = False
        """At least one event came framed as a stream; else TTFT is E2E."""
        self.last_event_at: float | None = None
        """When data came last. Comments and blank lines are no data: they only say that a
        gateway is alive."""

    def feed(self, data: bytes, at: float) -> None:
        """Read the bytes of one read, which came at this moment."""
        expected = self._expected
        if expected is not None and expected.is_one_event(data):
            self.arrivals.append(at)
            self.last_event_at = at
        elif not self.is_over:
            self._read(data, at)
            is_between = self._reader.is_between_events and not self.is_over
            self._expected = self._template if is_between else None

    def _read(self, data: bytes, at: float) -> None:
        try:
            if self._reader.is_between_events and data.endswith(_END_OF_EVENT):
                self._take_whole_events(data.split(_END_OF_EVENT)[:-1], at)
            else:
                self._take_all(self._reader.feed(data, at))
        except StreamTooLong as error:
            self.malformed = str(error)

    def end(self) -> None:
        """The body ended by itself: its last line need not end with a line break."""
        if not self.is_over:
            self._take_all(self._reader.end())

    @property
    def is_over(self) -> bool:
        """Nothing that may still come changes the answer."""
        return self.is_done or self.error is not None or self.malformed is not None

    @property
    def finish_reason(self) -> str | None:
        """Why the model stopped: of the first choice, or of any other."""
        return next((self._finish_reasons[index] for index in sorted(self._finish_reasons)), None)

    @property
    def choices(self) -> int:
        """How many choices the answer has; ``usage`` is their sum."""
        return max(1, len(self._choices))

    @property
    def stray_text(self) -> str:
        """The first line that belongs to no answer at all: a page, a plain text."""
        return self._reader.stray_line.decode(errors="replace")

    @property
    def usage_missing(self) -> bool:
        """The server did not say how many tokens it sent."""
        return not self.usage_tokens and len(self.arrivals) > 0

    @property
    def output_tokens(self) -> int:
        """Tokens by usage; chunks that carry a token where there is none."""
        return self.usage_tokens or len(self.arrivals)

    def token_arrivals(self) -> array[float]:
        """The stamps at which tokens came, those without a text included.

        A token can have no text of its own: half a character, or the end-of-sequence mark that
        ``ignore_eos`` goes past. vLLM sends it as a chunk with an empty text. Other servers send
        empty chunks that stand for nothing, so they are believed only as far as ``usage`` says
        that there were more tokens than chunks with a text.
        """
        missing = (self.usage_tokens or 0) - len(self.arrivals)
        quiet = self._quiet
        if missing == len(quiet) - 1 and self._quiet_is_last:
            quiet = quiet[:-1]
        if not quiet or missing < len(quiet):
            return self.arrivals
        return array("d", sorted((*self.arrivals, *quiet)))

    def _take_whole_events(self, events: list[bytes], at: float) -> None:
        """Take events that lie in one read from their first byte to their blank line; those that
        are like one before, undecoded."""
        is_at_one = True
        """The reader keeps nothing that the next event might belong to."""
        template, arrived = self._template, self.arrivals.append
        for data in events:
            if is_at_one and template is not None and template.matches(data):
                arrived(at)
                self.last_event_at = at
                continue
            told = self._reader.feed(data + _END_OF_EVENT, at)
            self._take_all(told)
            if self.is_over:
                return
            is_at_one = self._reader.is_between_events
            if len(told) == 1 and told[0].framed and not told[0].name and told[0].value:
                template = self._template = learn_template(data, told[0].value) or template

    def _take_all(self, events: Iterable[SseEvent]) -> None:
        for event in events:
            self._take(event)

    def _take(self, event: SseEvent) -> None:
        if self.is_over:
            return
        self.last_event_at = event.at
        self.is_streamed = self.is_streamed or event.framed
        if event.is_done:
            self.is_done = True
        elif event.undecodable:
            self.malformed = event.undecodable.decode(errors="replace")
        elif event.value is not None:
            self._take_object(event.name, event.value, event.at, event.framed)

    def _take_object(self, name: str, value: dict[str, Any], at: float, framed: bool) -> None:
        choices = value.get("choices")
        if isinstance(choices, list):
            self.has_choices = True
        error = _error_of(name, value)
        if framed or self.has_choices:
            self.error = error
        else:
            self.complaint = error or ""
        self._take_usage(value.get("usage"))
        if not isinstance(choices, list):
            return
        carries = False
        for choice in choices:
            if isinstance(choice, dict):
                carries = self._take_choice(choice, at) or carries
        if carries:
            self.arrivals.append(at)

    def _take_choice(self, choice: dict[str, Any], at: float) -> bool:
        """Note what a choice says; whether it carries a token."""
        index = choice.get("index")
        index = index if isinstance(index, int) else 0
        self._choices.add(index)
        self._take_usage(choice.get("usage"))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish_reasons[index] = reason
        delta = choice.get("delta") or choice.get("message")
        delta = delta if isinstance(delta, dict) else {}
        if choice.get("text") or any(delta.get(field) for field in _TOKEN_FIELDS):
            return True
        is_empty_text = choice.get("text") == "" or delta.get("content") == ""
        if is_empty_text and self.arrivals and not delta.get("role"):
            if not reason:
                self._quiet.append(at)
            elif reason == _LENGTH:
                self._quiet.append(at)
                self._quiet_is_last = True
        return False

    def _take_usage(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        self.prompt_tokens = _count(usage.get("prompt_tokens"), self.prompt_tokens)
        self.usage_tokens = _count(usage.get("completion_tokens"), self.usage_tokens)


def _count(value: object, otherwise: int | None) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return otherwise


def _error_of(name: str, value: Mapping[str, Any]) -> str | None:
    """What an event says that reports an error; ``None`` for one that does not."""
    error = value.get("error")
    if not (error or name == "error" or "error" in (value.get("object"), value.get("type"))):
        return None
    inner = error if isinstance(error, dict) else value
    for key in ("message", "detail", "details", "error"):
        text = inner.get(key)
        if isinstance(text, str) and text:
            return text
    return str(error or dict(value))
