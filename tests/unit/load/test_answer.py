"""Which chunks carry a token, how many tokens there were, and when they came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpu_dash.load.answer import Answer

USAGE_OF_3 = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def chat(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def text(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}


ROLE = chat(role="assistant", content="")
QUIET = chat(content="")


def answer_to(*chunks: dict[str, Any] | str) -> Answer:
    """An answer whose n-th chunk came at second n."""
    answer = Answer()
    for second, chunk in enumerate(chunks):
        data = chunk if isinstance(chunk, str) else json.dumps(chunk)
        answer.feed(f"data: {data}\n\n".encode(), float(second))
    answer.end()
    return answer


@pytest.mark.parametrize(
    ("chunk", "carries"),
    [
        (chat(role="assistant", content=""), False),
        (chat(role="assistant", content=None), False),
        (chat(), False),
        (chat(content="a"), True),
        (chat(content=" "), True),
        (chat(role="assistant", content="a"), True),
        (chat(content="", reasoning="a"), True),
        (chat(reasoning_content="a"), True),
        (chat(content=None, reasoning_content=None), False),
        (chat(content=[{"type": "thinking", "thinking": "a"}]), True),
        (chat(tool_calls=[{"index": 0, "function": {"name": "f"}}]), True),
        (chat(tool_calls=[]), False),
        (chat(tool_calls=None), False),
        (chat(refusal="no"), True),
        (chat(refusal=None, obfuscation="xx"), False),
        (chat("stop", content=""), False),
        (text("a"), True),
        (text(""), False),
        ({"choices": [{"message": {"role": "assistant", "content": "a"}}]}, True),
        ({"choices": [{"index": 0, "delta": None}]}, False),
        ({"choices": [None, 7, {"index": 1, "text": "a"}]}, True),
        ({"choices": []}, False),
        ({"choices": None}, False),
        ({"choices": "text"}, False),
        (USAGE_OF_3, False),
    ],
)
def test_which_chunk_carries_a_token(chunk: dict[str, Any], carries: bool) -> None:
    assert list(answer_to(chunk).arrivals) == ([0.0] if carries else [])


def test_usage_counts_the_tokens_and_chunks_do_where_there_is_none() -> None:
    with_usage = answer_to(text("a b"), text("c", "length"), USAGE_OF_3)
    assert (with_usage.output_tokens, with_usage.prompt_tokens) == (3, 7)
    assert not with_usage.usage_missing
    without = answer_to(text("a b"), text("c", "length"))
    assert (without.output_tokens, without.prompt_tokens) == (2, None)
    assert without.usage_missing


@pytest.mark.parametrize(
    "usage", [None, [], {}, *({"completion_tokens": count} for count in (None, "3", 0, True))]
)
def test_a_usage_that_says_nothing_is_no_usage(usage: object) -> None:
    answer = answer_to(text("a"), {"choices": [], "usage": usage})
    assert answer.output_tokens == 1
    assert answer.usage_missing


def test_the_newest_usage_counts_and_may_stand_in_the_choice() -> None:
    running = answer_to({**text("a"), "usage": {"completion_tokens": 1}}, USAGE_OF_3)
    assert running.output_tokens == 3
    inside = {"choices": [{"delta": {"content": "a"}, "usage": {"completion_tokens": 5}}]}
    assert answer_to(inside).output_tokens == 5


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        # half a character: vLLM sends a chunk with an empty text for a token
        ([text("a"), text(""), text("b", "length"), USAGE_OF_3], [0, 1, 2]),
        # ignore_eos: nothing but tokens without a text after the model's own end
        ([ROLE, chat(content="a"), QUIET, chat("length", content=""), USAGE_OF_3], [1, 2, 3]),
        # usage says that the empty chunk is none
        ([text("a"), text(""), text("b"), text("c", "length"), USAGE_OF_3], [0, 2, 3]),
        # the finish chunk is none, the other empty one is
        ([text("a"), text(""), text("b"), text("", "length"), USAGE_OF_3], [0, 1, 2]),
        # without usage an empty chunk is never believed
        ([text("a"), text(""), text("b", "length")], [0, 2]),
        # before the first token, with a role, or at a stop it is none either
        ([text(""), text("a"), ROLE, text("", "stop"), USAGE_OF_3], [1]),
        # several tokens a chunk
        ([text("a b c", "length"), USAGE_OF_3], [0]),
    ],
)  # fmt: skip
def test_a_token_without_a_text_counts_where_usage_says_so(
    chunks: list[dict[str, Any]], expected: list[float]
) -> None:
    assert list(answer_to(*chunks).token_arrivals()) == expected


@pytest.mark.parametrize(
    ("chunk", "says"),
    [
        ({"error": {"message": "out of memory", "code": 500}}, "out of memory"),
        ({"error": "out of memory"}, "out of memory"),
        ({"error": {"code": 500}}, "{'code': 500}"),
        ({"object": "error", "message": "no"}, "no"),
        ({"type": "error", "error": {"message": "no"}}, "no"),
        ({**text("a"), "error": None}, None),
        ({**text("a"), "error": {}}, None),
        ({"type": "ping"}, None),
    ],
)
def test_an_error_inside_a_stream(chunk: dict[str, Any], says: str | None) -> None:
    assert answer_to(chunk).error == says


def test_a_bare_error_is_an_answer_without_choices() -> None:
    answer = Answer()
    answer.feed(b'{"error": {"message": "gone"}}', 0.0)
    answer.end()
    assert answer.error is None
    assert not answer.has_choices
    assert answer.complaint == "gone"


@pytest.mark.parametrize("end", ["[DONE]", {"error": "x"}, "{broken"])
def test_nothing_counts_after_the_end(end: dict[str, Any] | str) -> None:
    answer = answer_to(text("a"), end, text("b"), USAGE_OF_3)
    assert answer.is_over
    assert list(answer.arrivals) == [0.0]
    assert answer.usage_tokens is None


def test_the_reason_of_the_first_choice_stands_and_is_not_forgotten() -> None:
    answer = answer_to(text("a", "stop"), {"choices": [{"index": 0, "finish_reason": None}]})
    assert answer.finish_reason == "stop"
    both = answer_to(
        {"choices": [{"index": 1, "text": "b", "finish_reason": "length"}]}, text("a", "stop")
    )
    assert (both.finish_reason, both.choices) == ("stop", 2)


def test_comments_are_no_data() -> None:
    answer = Answer()
    answer.feed(b": keep-alive\n\n", 5.0)
    assert answer.last_event_at is None
    answer.feed(b'data: {"choices": []}\n\n', 6.0)
    answer.feed(b": keep-alive\n\n", 9.0)
    assert answer.last_event_at == 6.0
