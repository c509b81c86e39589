"""An event is taken undecoded only where decoding it would have said the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpu_dash.load.answer import Answer
from gpu_dash.load.template import ChunkTemplate, learn_template

HEAD, TAIL = b'data: {"choices":[{"text":"', b'"}]}'


def chat(text: Any, **choice: Any) -> dict[str, Any]:
    delta = {"content": text}
    return {"id": "c-1", "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}]}


def line(value: dict[str, Any], *, compact: bool = True) -> bytes:
    separators = (",", ":") if compact else None
    return b"data: " + json.dumps(value, separators=separators).encode()


def learned(value: dict[str, Any], *, compact: bool = True) -> ChunkTemplate:
    template = learn_template(line(value, compact=compact), value)
    assert template is not None
    return template


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("text", ["b", " two words", "<|x|>", "{}[],:", "é"])
def test_the_same_event_with_another_text_is_alike(text: str, compact: bool) -> None:
    template = learned(chat(" a"), compact=compact)
    raw = line(chat("PLACE"), compact=compact).replace(b"PLACE", text.encode())
    assert template.matches(raw)


@pytest.mark.parametrize(
    "event",
    [
        line(chat("")),
        line(chat(None)),
        line(chat('say "x"')),
        line(chat("a\nb")),
        line(chat(" a", finish_reason="stop")),
        line(chat(" a", index=1)),
        line(chat(" a") | {"id": "c-2"}),
        line(chat(" a") | {"usage": {"completion_tokens": 3}}),
        line({"error": {"message": "gone"}}),
        line(chat(" a"))[:-2],
        line(chat(" a")) + b"\ndata: x",
        b"event: error\n" + line(chat(" a")),
        b": ping",
        b"",
        b'data: {"id":"c-1","choices":[{"index":0,"delta":{"content":"a","content":""},'
        b'"finish_reason":null}]}',
    ],
)
def test_what_differs_in_anything_else_is_not_alike(event: bytes) -> None:
    assert not learned(chat(" a")).matches(event)


@pytest.mark.parametrize(
    "value",
    [
        chat(""),
        chat("é"),
        chat('"'),
        chat("a", finish_reason="length"),
        chat("a") | {"usage": {"completion_tokens": 1}},
        chat("a") | {"note": {"content": "a"}},
        chat("a") | {"choices": [*chat("a")["choices"], *chat("b")["choices"]]},
        {"choices": []},
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "a"}}]},
        {"choices": [{"index": 0, "delta": {"content": "a", "reasoning_content": "b"}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0}]}}]},
    ],
)
def test_an_event_that_says_more_than_a_text_teaches_nothing(value: dict[str, Any]) -> None:
    assert learn_template(line(value), value) is None


def test_an_answer_read_whole_says_what_it_says_byte_by_byte() -> None:
    events = [
        line(chat("", **{"delta": {"role": "assistant", "content": ""}})),
        *(line(chat(text)) for text in ("a", "b", 'c"', "d", "\n", "", "e")),
        b": ping",
        *(line(chat("r", **{"delta": {"reasoning_content": text}})) for text in "xyz"),
        line(chat("f", finish_reason="stop")),
        line({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 12}}),
        b"data: [DONE]",
    ]
    body = b"".join(event + b"\n\n" for event in events)
    whole, bytewise, eventwise = Answer(), Answer(), Answer()
    whole.feed(body, 1.0)
    for number in range(len(body)):
        bytewise.feed(body[number : number + 1], 1.0)
    for event in events:
        eventwise.feed(event + b"\n\n", 1.0)
    for answer in (whole, bytewise, eventwise):
        assert answer.token_arrivals().tolist() == [1.0] * 11
        assert (answer.output_tokens, answer.finish_reason, answer.is_done) == (12, "stop", True)


def test_an_error_after_events_that_were_alike_is_seen() -> None:
    answer = Answer()
    answer.feed(b"".join(line(chat(text)) + b"\n\n" for text in "abc"), 1.0)
    answer.feed(line(chat("d")) + b'\n\ndata: {"error":{"message":"gone"}}\n\n', 2.0)
    assert answer.error == "gone"
    assert answer.arrivals.tolist() == [1.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("read", "is_one"),
    [
        (HEAD + b" a" + TAIL + b"\n\n", True),
        (HEAD + b" a" + TAIL + b"\n", False),
        (HEAD + TAIL + b"\n\n", False),
        (HEAD + b'"' + TAIL + b"\n\n", False),
        (HEAD + b" a" + TAIL + b"\n\n" + HEAD + b" b" + TAIL + b"\n\n", False),
        (HEAD[:-1] + TAIL + b"\n\n", False),
    ],
)
def test_a_read_is_one_event_only_if_it_is_that_and_no_more(read: bytes, is_one: bool) -> None:
    assert ChunkTemplate(HEAD, TAIL).is_one_event(read) is is_one
