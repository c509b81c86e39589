"""Bytes in, events out, whatever way they are cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpu_dash.load import sse
from gpu_dash.load.sse import EventReader, SseEvent, StreamTooLong

ONE = {"a": 1}
NOT_A_NUMBER = pytest.approx(float("nan"), nan_ok=True)
TWO = {"b": [2, "z"]}


def read(body: bytes, size: int | None = None) -> list[SseEvent]:
    """Feed a body in reads of one size (all at once if ``None``) and end it."""
    reader = EventReader()
    size = size or max(1, len(body))
    events = [
        event
        for start in range(0, len(body), size)
        for event in reader.feed(body[start : start + size], float(start))
    ]
    return events + reader.end()


def values(events: list[SseEvent]) -> list[Any]:
    return ["DONE" if e.is_done else "BAD" if e.undecodable else e.value for e in events]


BODIES: list[tuple[str, bytes, list[Any]]] = [
    ("plain", b'data: {"a": 1}\n\ndata: {"b": [2, "z"]}\n\ndata: [DONE]\n\n', [ONE, TWO, "DONE"]),
    ("no space", b'data:{"a": 1}\n\ndata:[DONE]\n\n', [ONE, "DONE"]),
    ("crlf", b'data: {"a": 1}\r\n\r\ndata: [DONE]\r\n\r\n', [ONE, "DONE"]),
    ("cr", b'data: {"a": 1}\r\rdata: [DONE]\r\r', [ONE, "DONE"]),
    ("byte order mark", b'\xef\xbb\xbfdata: {"a": 1}\n\n', [ONE]),
    ("comments", b': ping\n\n: ping\ndata: {"a": 1}\n\n', [ONE]),
    ("heartbeats", b'data:\n\ndata: ping\n\ndata: : x\n\ndata: {"a": 1}\n\n', [ONE]),
    ("id and retry", b'id: 7\nretry: 10\ndata: {"a": 1}\n\n', [ONE]),
    ("several data lines", b'data: {\ndata:  "a":\ndata: 1}\n\n', [ONE]),
    ("only the first line prefixed", b'data: {\n  "a":\n  1\n}\n\n', [ONE]),
    ("no blank lines", b'data: {"a": 1}\ndata: {"a": 1}\ndata: [DONE]\n', [ONE, ONE, "DONE"]),
    ("no last line break", b'data: {"a": 1}', [ONE]),
    ("broken", b'data: {"a": \n\ndata: {"a": 1}\n\n', ["BAD", ONE]),
    ("broken at the end", b'data: {"a": 1}\n\ndata: {"a', [ONE, "BAD"]),
    ("a list", b'data: [{"a": 1}, 7]\n\n', [ONE]),
    ("bare object", b'{"a": 1}', [ONE]),
    ("bare pretty object", b'{\n\n  "a":\n1\n}\n', [ONE]),
    ("bare object in a stream", b'data: {"a": 1}\n\n{"a": 1}\n\n', [ONE, ONE]),
    ("a log line before the stream", b'[info] hello\ndata: {"a": 1}\n\n', [ONE]),
    ("no ends of lines", 'data: {"a": "\u2028\u0085"}\n\n'.encode(), [{"a": "\u2028\x85"}]),
    ("half a character", b'data: {"a": "\xe4\xbd"}\n\n', [{"a": "\ufffd"}]),
    ("lone surrogate", b'data: {"a": "\\ud83d"}\n\n', [{"a": "\ud83d"}]),
    ("not a number", b'data: {"a": 1, "b": NaN}\n\n', [{"a": 1, "b": NOT_A_NUMBER}]),
    ("html", b"<html>\n<body>Sign in</body>\n</html>\n", []),
    ("nothing", b"", []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES]
)
@pytest.mark.parametrize("size", [None, 1, 2, 7])
def test_a_body_gives_the_same_events_however_it_is_cut(
    body: bytes, expected: list[Any], size: int | None
) -> None:
    assert values(read(body, size)) == expected


def test_an_event_carries_the_moment_of_the_read_that_completed_its_line() -> None:
    reader = EventReader()
    assert reader.feed(b'data: {"a"', 1.0) == []
    (event,) = reader.feed(b": 1}\n", 2.0)
    assert (event.value, event.at) == (ONE, 2.0)
    assert reader.feed(b"\n", 3.0) == []


def test_the_last_line_without_a_break_belongs_to_the_last_read() -> None:
    reader = EventReader()
    reader.feed(b'{"a"', 1.0)
    reader.feed(b": 1}", 2.0)
    (event,) = reader.end()
    assert (event.value, event.at, event.framed) == (ONE, 2.0, False)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'event: error\ndata: {"code": 400}\n\n', [("error", {"code": 400})]),
        (b'error: {"code": 400}\n\n', [("error", {"code": 400})]),
        (b"event: error\n\n", [("error", {})]),
        (b'event: ping\ndata: {"a": 1}\n\ndata: {"a": 1}\n\n', [("ping", ONE), ("", ONE)]),
        (b'data: {"a": 1}\nevent: error\n\n', [("", ONE), ("error", {})]),
    ],
)
def test_names_of_events(body: bytes, expected: list[tuple[str, dict[str, Any]]]) -> None:
    assert [(event.name, event.value) for event in read(body)] == expected


def test_a_page_is_remembered_by_its_first_line() -> None:
    reader = EventReader()
    reader.feed(b"\n<!DOCTYPE html>\n<html>\n", 0.0)
    assert reader.stray_line == b"<!DOCTYPE html>"


@pytest.mark.parametrize(
    ("head", "piece"), [(b"", b"x" * 1000), (b"data: {\n", b"data: %s\n" % (b"1" * 1000))]
)
def test_a_line_or_an_event_without_an_end_is_refused(
    head: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 10_000)
    reader = EventReader()
    reader.feed(head, 0.0)
    for _ in range(9):
        reader.feed(piece, 0.0)
    with pytest.raises(StreamTooLong, match="does not end"):
        reader.feed(piece * 2, 0.0)


def test_a_long_event_in_small_reads_takes_linear_time() -> None:
    value = {"a": "x" * 2_000_000}
    assert values(read(b"data: " + json.dumps(value).encode() + b"\n\n", size=64)) == [value]
