"""The first outcome that fits, and what may be said about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpu_dash.load.answer import Answer
from gpu_dash.load.outcome import (
    MAX_DETAIL_CHARACTERS,
    describe_answer,
    make_detail,
    outcome_of_answer,
    outcome_of_status,
)
from gpu_dash.model.load import Outcome


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, "", None),
        (204, "", None),
        (308, "", Outcome.BAD_REQUEST),
        (400, '{"error":{"message":"temperature must be non-negative"}}', Outcome.BAD_REQUEST),
        (400, "1 validation error: {'type': 'json_invalid'}", Outcome.BAD_REQUEST),
        (400, "This model's maximum context length is 2048 tokens.", Outcome.CONTEXT_EXCEEDED),
        (400, "max_tokens=5 cannot be greater than max_model_len=2", Outcome.CONTEXT_EXCEEDED),
        (400, "The model `Qwen2.5-7B/x` does not exist.", Outcome.MODEL_NOT_FOUND),
        (400, "API key not valid. Please pass a valid API key.", Outcome.UNAUTHORIZED),
        (401, '{"error":"Unauthorized"}', Outcome.UNAUTHORIZED),
        (402, "pay", Outcome.BAD_REQUEST),
        (403, "", Outcome.UNAUTHORIZED),
        (404, '{"detail":"Not Found"}', Outcome.NOT_FOUND),
        (404, "<title>404 Not Found</title>", Outcome.NOT_FOUND),
        (404, "404 page not found: /v1/models", Outcome.NOT_FOUND),
        (404, 'model \\"a\\" not found, try pulling it first', Outcome.MODEL_NOT_FOUND),
        (404, '{"error":{"code":"model_not_found"}}', Outcome.MODEL_NOT_FOUND),
        (405, '{"detail":"Method Not Allowed"}', Outcome.BAD_REQUEST),
        (413, "too large", Outcome.BAD_REQUEST),
        (429, "the model is overloaded, context length", Outcome.RATE_LIMITED),
        (500, "cannot schedule new futures after shutdown", Outcome.SERVER_ERROR),
        (500, "the request exceeds the available context size", Outcome.CONTEXT_EXCEEDED),
        (502, "", Outcome.SERVER_ERROR),
        (503, "model not found", Outcome.OVERLOADED),
        (529, "", Outcome.OVERLOADED),
    ],
)  # fmt: skip
def test_a_status_and_its_body(status: int, body: str, expected: Outcome | None) -> None:
    assert outcome_of_status(status, body) is expected


def answer_of(*values: dict[str, Any] | str) -> Answer:
    answer = Answer()
    for value in values:
        data = value if isinstance(value, str) else json.dumps(value)
        answer.feed(f"data: {data}\n\n".encode(), 0.0)
    answer.end()
    return answer


def chunk(text: str, finish: str | None = None, index: int = 0) -> dict[str, Any]:
    return {"choices": [{"index": index, "text": text, "finish_reason": finish}]}


def usage(tokens: int) -> dict[str, Any]:
    return {"choices": [], "usage": {"completion_tokens": tokens}}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([chunk("a", "length"), usage(4)], Outcome.OK),
        ([chunk("a", "stop"), usage(1)], Outcome.OK),
        ([chunk("a", "tool_calls"), usage(1)], Outcome.OK),
        ([chunk("a", "EOS_TOKEN"), usage(1)], Outcome.OK),
        ([chunk("a"), usage(4)], Outcome.OK),
        ([chunk("a"), usage(3)], Outcome.CUT),
        ([chunk("a", "length"), usage(3)], Outcome.CUT),
        ([chunk("a", "length")], Outcome.OK),
        ([chunk("a")], Outcome.CUT),
        ([chunk("a", "content_filter"), usage(1)], Outcome.CUT),
        ([chunk("a", "abort"), usage(1)], Outcome.CUT),
        ([chunk("a", "length"), chunk("b", "length", index=1), usage(8)], Outcome.OK),
        ([chunk("a", "length"), chunk("b", "length", index=1), usage(4)], Outcome.CUT),
        ([chunk(""), chunk("", "stop"), usage(1)], Outcome.EMPTY),
        ([usage(4)], Outcome.EMPTY),
        (["[DONE]"], Outcome.NO_CHOICES),
        ([{"id": "x"}], Outcome.NO_CHOICES),
        ([chunk("a"), {"error": "gone"}], Outcome.ERROR_IN_STREAM),
        ([{"error": "gone"}], Outcome.ERROR_IN_STREAM),
        ([chunk("a"), "{broken", {"error": "gone"}], Outcome.MALFORMED),
    ],
)
def test_an_answer_of_which_four_tokens_were_asked(
    values: list[dict[str, Any] | str], expected: Outcome
) -> None:
    assert outcome_of_answer(answer_of(*values), asked_tokens=4) is expected


def test_a_page_instead_of_an_answer_is_malformed_and_quoted() -> None:
    answer = Answer()
    answer.feed(b"<html>Sign in</html>\n", 0.0)
    answer.end()
    outcome = outcome_of_answer(answer, 4)
    assert outcome is Outcome.MALFORMED
    assert "<html>Sign in</html>" in describe_answer(answer, outcome, 4)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([chunk("a", "length"), usage(3)], "3 of 4 tokens; finish_reason length"),
        ([chunk("a"), {"error": {"message": "gone"}}], "gone"),
        (["[DONE]"], "HTTP 200 without choices"),
        ([chunk("", "stop")], "no token; finish_reason stop"),
        ([chunk("a", "stop")], ""),
    ],
)
def test_a_failure_is_described(values: list[dict[str, Any] | str], says: str) -> None:
    answer = answer_of(*values)
    assert describe_answer(answer, outcome_of_answer(answer, 4), 4) == says


def test_an_answer_that_was_no_stream_says_so() -> None:
    answer = Answer()
    answer.feed(b'{"choices": [{"text": "a", "finish_reason": "stop"}]}', 0.0)
    answer.end()
    assert "not as a stream" in describe_answer(answer, outcome_of_answer(answer, 4), 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m\nnext", "red ⏎ next"),
        ("key sk-1 refused", "key [key] refused"),
        ("s\x1b[0mk-1", "[key]"),
        ("=1+1", "=1+1"),
    ],
)
def test_a_detail_is_one_clean_line_without_the_key(text: str, expected: str) -> None:
    assert make_detail(text, "sk-1") == expected


def test_a_key_is_not_left_in_part_where_a_detail_is_cut() -> None:
    for before in range(MAX_DETAIL_CHARACTERS - 40, MAX_DETAIL_CHARACTERS + 1):
        detail = make_detail("x" * before + " sk-secret-of-some-length", "sk-secret-of-some-length")
        assert len(detail) <= MAX_DETAIL_CHARACTERS
        assert "sk-" not in detail


def test_a_key_with_quotes_is_found_in_json_and_in_python() -> None:
    key = "a\"b\\c'd"
    for spelling in (key, json.dumps(key), repr(key), f"{{'x': {key!r}}}"):
        assert "b" not in make_detail(f"no: {spelling}", key).removeprefix("no: ")
