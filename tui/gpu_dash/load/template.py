"""Reading the events that are alike without decoding them.

Of the hundreds of events of a stream all but a few differ in nothing but their text. Once one has
been decoded in full, a next one with the same bytes before and after its text says the same: one
more token. Comparing costs a fifth of decoding, and whatever differs in anything else (a finish
reason, usage, an error, an escape in the text, another choice) is decoded like the first.
"""

from __future__ import annotations

import re
from typing import Any

_PLAIN_TEXT = re.compile(r"[ !#-\[\]-~]+")
"""Printable ASCII without the quote and the backslash: it stands in JSON as it is."""
_TEXT_FIELDS = ("content", "reasoning_content", "reasoning", "thinking")


class ChunkTemplate:
    """The bytes around the text of an event that carries one token and says nothing else.

    Args:
        head: the line up to the text.
        tail: the line from the end of the text on.
    """

    def __init__(self, head: bytes, tail: bytes) -> None:
        self._head = head
        self._tail = tail
        self._ended_tail = tail + b"\n\n"
        self._text_from = len(head)
        self._text_to = -len(tail)
        self._ended_text_to = -len(self._ended_tail)

    def matches(self, event: bytes) -> bool:
        """Whether an event, without the blank line that ends it, differs only in a text that is
        not empty."""
        return (
            event.startswith(self._head)
            and event.endswith(self._tail)
            and _is_text(event[self._text_from : self._text_to])
        )

    def is_one_event(self, data: bytes) -> bool:
        """Whether what was read is one such event and the blank line that ends it."""
        return (
            data.startswith(self._head)
            and data.endswith(self._ended_tail)
            and _is_text(data[self._text_from : self._ended_text_to])
        )


def _is_text(text: bytes) -> bool:
    """Whether it is the inside of a JSON string that stands there as it is, and is not empty: an
    event that is shorter than head and tail together, which overlap in it then, leaves nothing
    between them."""
    return (
        text != b""
        and b'"' not in text
        and b"\\" not in text
        and b"\n" not in text
        and b"\r" not in text
    )


def learn_template(event: bytes, value: dict[str, Any]) -> ChunkTemplate | None:
    """The template of an event that was decoded.

    Args:
        event: its bytes, without the blank line.
        value: what it says.

    Returns:
        The template; ``None`` for an event that says more than one text, or whose text cannot be
        found in its bytes without doubt.
    """
    if value.get("usage") or value.get("error") or not event.startswith(b"data:"):
        return None
    choices = value.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return None
    choice = choices[0]
    if choice.get("finish_reason") or choice.get("usage"):
        return None
    told = _told_text(choice)
    if told is None:
        return None
    field, text = told
    for separator in (b'":"', b'": "'):
        opening = b'"' + field.encode() + separator
        closing = text.encode() + b'"'
        if event.count(opening + closing) == 1:
            at = event.index(opening + closing) + len(opening)
            return ChunkTemplate(event[:at], event[at + len(text) :])
    return None


def _told_text(choice: dict[str, Any]) -> tuple[str, str] | None:
    """The one field with a text, and the text, if it stands in JSON as it is."""
    delta = choice.get("delta")
    texts = [("text", choice.get("text"))]
    if isinstance(delta, dict):
        if delta.get("role"):
            return None  # servers say it once, so the next event will not be like this one
        texts += [(field, delta.get(field)) for field in _TEXT_FIELDS]
    told = [(field, text) for field, text in texts if text]
    if len(told) != 1:
        return None
    field, text = told[0]
    if not isinstance(text, str) or not _PLAIN_TEXT.fullmatch(text):
        return None
    return field, text
