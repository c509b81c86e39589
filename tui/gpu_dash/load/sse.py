"""Server-sent events as OpenAI-compatible servers really send them: bytes in, objects out.

The grammar is that of the HTML standard (lines end with LF, CR or CRLF; fields ``data``,
``event``; comments), read with the tolerance that real gateways need:

* an event is handed on as soon as its data is whole JSON, so that servers which leave out the
  blank line, or spread one JSON over several lines, are read alike;
* a JSON object that comes without ``data:`` (an answer that is no stream, an error in the middle
  of one) is an event too, marked as not framed;
* data that is no JSON object (``data:``, ``data: ping``) is a heartbeat and is skipped.

Every event carries the stamp of the read that completed its last line.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from gpu_dash.model.errors import GpuDashError

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""A line or an event longer than this is no answer of a language model."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_decode_strictly = msgspec.json.Decoder().decode


class StreamTooLong(GpuDashError):
    """An event that does not end."""


class SseEvent(NamedTuple):
    """One event of a stream."""

    name: str
    """The ``event`` field; ``error`` also for data under an ``error`` field (llama.cpp)."""
    value: dict[str, Any] | None
    """The decoded data; ``None`` when the event is ``[DONE]`` or could not be decoded."""
    at: float
    """Monotonic stamp of the read that completed it."""
    is_done: bool = False
    """It is ``[DONE]``."""
    undecodable: bytes = b""
    """The head of data that looked like JSON and is none."""
    framed: bool = True
    """It came in a ``data`` field, not as a bare JSON object."""


class EventReader:
    """Cuts a body into events, read by read."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        """The line that has not ended yet, as it came."""
        self._line_bytes = 0
        self._at_start = True
        self._after_cr = False
        self._name = ""
        self._name_is_told = False
        self._pending: list[bytes] = []
        """Lines of data that are not yet whole JSON."""
        self._pending_bytes = 0
        self._pending_framed = True
        self._last_read_at = 0.0
        self.stray_line = b""
        """The head of the first line that belongs to no stream: an HTML page, plain text."""

    @property
    def is_between_events(self) -> bool:
        """What comes next begins an event."""
        return not (self._pieces or self._pending or self._name or self._after_cr)

    def feed(self, data: bytes, at: float) -> list[SseEvent]:
        """The events that these bytes completed.

        Args:
            data: the bytes of one read, content coding and chunk framing removed.
            at: the moment of that read.

        Raises:
            StreamTooLong: a line or an event does not end.
        """
        self._last_read_at = at
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        events: list[SseEvent] = []
        for line in lines:
            if self._pieces:
                line = b"".join((*self._pieces, line))
                self._pieces.clear()
                self._line_bytes = 0
            self._read_line(line, at, events)
        if rest:
            self._pieces.append(rest)
            self._line_bytes += len(rest)
            self._refuse_more_than_the_limit(self._line_bytes)
        return events

    def end(self) -> list[SseEvent]:
        """The events that the end of the body completed: its last line need not end."""
        events: list[SseEvent] = []
        if self._pieces:
            line = b"".join(self._pieces)
            self._pieces.clear()
            self._read_line(line, self._last_read_at, events)
        self._end_event(self._last_read_at, events, at_the_end=True)
        return events

    def _read_line(self, line: bytes, at: float, events: list[SseEvent]) -> None:
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not line:
            self._end_event(at, events)
            return
        field, colon, value = line.partition(b":")
        if field == b"data":
            if self._pending and not self._pending_framed:
                self._keep_as_stray(self._pending[0])
                self._forget_pending()
            self._read_data(value.strip(), at, events)
        elif field == b"event":
            self._name = value.strip().decode(errors="replace")
            self._name_is_told = False
        elif field == b"error" and colon:
            self._name = "error"
            self._read_data(value.strip(), at, events)
        elif field in (b"", b"id", b"retry"):
            pass
        elif self._pending or line.lstrip()[:1] in (b"{", b"["):
            self._read_data(line.strip(), at, events, framed=False)
        else:
            self._keep_as_stray(line)

    def _read_data(
        self, data: bytes, at: float, events: list[SseEvent], *, framed: bool = True
    ) -> None:
        if not self._pending:
            if data.upper() == b"[DONE]":
                events.append(SseEvent(self._name, None, at, is_done=True))
                return
            if data[:1] not in (b"{", b"["):
                return
            self._pending_framed = framed
        self._pending.append(data)
        self._pending_bytes += len(data)
        self._refuse_more_than_the_limit(self._pending_bytes)
        if data[-1:] not in (b"}", b"]"):
            return  # cannot be the end of the JSON; a long pretty-printed one is not tried a line
        decoded = _decode(b"\n".join(self._pending))
        if decoded is None:
            return
        self._name_is_told = True
        self._forget_pending()
        events.extend(
            SseEvent(self._name, value, at, framed=self._pending_framed)
            for value in (decoded if isinstance(decoded, list) else [decoded])
            if isinstance(value, dict)
        )

    def _end_event(self, at: float, events: list[SseEvent], *, at_the_end: bool = False) -> None:
        """A blank line: what is not whole by now never will be."""
        if self._pending and (self._pending_framed or at_the_end):
            head = b"\n".join(self._pending)[:200]
            events.append(
                SseEvent(self._name, None, at, undecodable=head, framed=self._pending_framed)
            )
            self._forget_pending()
        elif self._name == "error" and not self._name_is_told:
            events.append(SseEvent(self._name, {}, at))
        self._name = ""
        self._name_is_told = False

    def _keep_as_stray(self, line: bytes) -> None:
        if not self.stray_line:
            self.stray_line = line[:200].strip()

    def _forget_pending(self) -> None:
        self._pending.clear()
        self._pending_bytes = 0

    def _refuse_more_than_the_limit(self, size: int) -> None:
        if size > MAX_EVENT_BYTES:
            raise StreamTooLong(f"an event of more than {MAX_EVENT_BYTES >> 20} MiB does not end")


def _decode(data: bytes) -> Any:
    """The JSON value, or ``None`` if it is none.

    The strict decoder first; then Python's own, which also takes what some servers write: a
    character that is cut in half, a lone surrogate, ``NaN``, control characters in strings.
    """
    try:
        return _decode_strictly(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return json.loads(data.decode(errors="replace"), strict=False)
    except (ValueError, RecursionError):
        return None
