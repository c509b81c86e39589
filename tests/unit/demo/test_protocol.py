"""What the OpenAI routes take, and how they refuse the rest."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from gpu_dash.demo.protocol import ApiError, Generation, ModelCard, natural_length, read_generation

CARD = ModelCard(names=("tiny", "also-tiny"), root="/models/tiny", max_model_len=2048)


def read(body: object, *, chat: bool = False, natural_tokens: int = 100) -> Generation:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_generation(
        raw, "application/json", chat=chat, card=CARD, natural_tokens=natural_tokens
    )


def refusal(
    body: object, *, chat: bool = False, content_type: str = "application/json"
) -> tuple[int, dict[str, object]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(ApiError) as caught:
        read_generation(raw, content_type, chat=chat, card=CARD, natural_tokens=100)
    error = json.loads(caught.value.body)["error"]
    assert error["code"] == caught.value.status
    return int(caught.value.status), error


@pytest.mark.parametrize(
    ("prompt", "tokens"),
    [
        ("x", 1),
        ("12345678", 2),
        ("123456789", 3),
        (["12345678"], 2),
        ([5, 6, 7], 3),
        ([[5, 6, 7, 8]], 4),
    ],
)
def test_a_prompt_is_text_or_token_ids(prompt: object, tokens: int) -> None:
    assert read({"prompt": prompt}).prompt_tokens == tokens


def test_messages_count_their_text_and_the_template() -> None:
    one = read({"messages": [{"role": "user", "content": "12345678"}]}, chat=True)
    parts = [{"type": "text", "text": "1234"}, {"type": "text", "text": "5678"}]
    same = read({"messages": [{"role": "user", "content": parts}]}, chat=True)
    two = read({"messages": [{"role": "user", "content": "12345678"}] * 2}, chat=True)
    assert one.prompt_tokens == same.prompt_tokens == 6
    assert two.prompt_tokens == 12


@pytest.mark.parametrize(
    ("fields", "tokens", "ends_with"),
    [
        ({}, 16, "length"),
        ({"max_tokens": 40}, 40, "length"),
        ({"max_tokens": 100}, 100, "length"),
        ({"max_tokens": 101}, 100, "stop"),
        ({"max_tokens": 500, "ignore_eos": True}, 500, "length"),
        ({"max_tokens": 500, "ignore_eos": False}, 100, "stop"),
    ],
)
def test_an_answer_ends_at_its_limit_or_by_itself(
    fields: dict[str, object], tokens: int, ends_with: str
) -> None:
    generation = read({"prompt": "x", **fields})
    assert (generation.output_tokens, generation.ends_with) == (tokens, ends_with)


def test_a_chat_has_its_own_name_for_the_limit_and_none_by_default() -> None:
    messages = {"messages": [{"role": "user", "content": "x"}]}
    assert read({**messages, "max_completion_tokens": 7}, chat=True).output_tokens == 7
    assert read({**messages, "ignore_eos": True}, chat=True).output_tokens == 2048 - 5


def test_prompt_and_answer_that_fit_only_one_by_one_are_cut_silently() -> None:
    generation = read({"prompt": [1] * 2040, "max_tokens": 500, "ignore_eos": True})
    assert (generation.output_tokens, generation.ends_with) == (8, "length")


def test_stream_options_are_read() -> None:
    plain = read({"prompt": "x"})
    assert (plain.stream, plain.include_usage, plain.usage_in_every_chunk) == (False,) * 3
    options = {"include_usage": True, "continuous_usage_stats": True}
    asked = read({"prompt": "x", "stream": True, "stream_options": options})
    assert (asked.stream, asked.include_usage, asked.usage_in_every_chunk) == (True,) * 3


def test_the_answer_names_the_model_that_was_asked_for() -> None:
    assert read({"prompt": "x"}).model == "tiny"
    assert read({"prompt": "x", "model": "also-tiny"}).model == "also-tiny"


@pytest.mark.parametrize(
    ("body", "status", "kind", "param", "words"),
    [
        (
            {"prompt": "x", "model": "nope"},
            404,
            "NotFoundError",
            "model",
            "The model `nope` does not exist. Valid aliases: tiny, also-tiny.",
        ),
        (b'{"model": "tiny", "prompt": ', 400, "Bad Request", "body.28", "'json_invalid'"),
        (b"\xff\xfe", 400, "Bad Request", "body.0", "'json_invalid'"),
        (b"[]", 400, "Bad Request", "body", "valid dictionary"),
        ({"model": "tiny"}, 400, "Bad Request", "body.prompt", "'missing'"),
        ({"prompt": 5}, 400, "Bad Request", "body.prompt", "one text"),
        ({"prompt": []}, 400, "Bad Request", "body.prompt", "one text"),
        ({"prompt": ["a", "b"]}, 400, "Bad Request", "body.prompt", "one text"),
        ({"prompt": "x", "max_tokens": "lots"}, 400, "Bad Request", "body.max_tokens", "'lots'"),
        ({"prompt": "x", "max_tokens": 0}, 400, "BadRequestError", "max_tokens", "at least 1"),
        (
            {"prompt": "x", "max_tokens": 5000},
            400,
            "BadRequestError",
            "max_tokens",
            "max_tokens=5000 cannot be greater than max_model_len=2048. Please request fewer "
            "output tokens. (parameter=max_tokens, value=5000)",
        ),
        (
            {"prompt": "x" * 28000},
            400,
            "BadRequestError",
            "input_text",
            "your prompt contains 28000 characters (more than 26624 characters, which is the "
            "upper bound for 2048 input tokens)",
        ),
        (
            {"prompt": [1] * 2100},
            400,
            "BadRequestError",
            "input_tokens",
            "your prompt contains 2100 input tokens, which exceeds this limit",
        ),
        (
            {"prompt": "x", "temperature": -1.0},
            400,
            "BadRequestError",
            "temperature",
            "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)",
        ),
        (
            {"prompt": "x", "stream_options": 3},
            400,
            "Bad Request",
            "body.stream_options",
            "valid dictionary",
        ),
    ],
)
def test_a_refusal_has_the_words_of_vllm(
    body: object, status: int, kind: str, param: str, words: str
) -> None:
    got, error = refusal(body)
    assert (got, error["type"], error["param"]) == (status, kind, param)
    assert words in str(error["message"])


@pytest.mark.parametrize("messages", [None, [], "hello", [5]])
def test_a_chat_needs_messages(messages: object) -> None:
    status, error = refusal({"messages": messages}, chat=True)
    assert status == 400
    assert str(error["param"]).startswith("body.messages")


def test_another_content_type_is_refused() -> None:
    status, error = refusal({"prompt": "x"}, content_type="text/plain")
    assert status == 400
    assert "Only 'application/json' is allowed" in str(error["message"])


def test_answers_end_by_themselves_at_evenly_spread_lengths() -> None:
    lengths = [natural_length(serial) for serial in range(1, 1001)]
    assert 125 < sum(lengths) / len(lengths) < 131
    assert (min(lengths), max(lengths)) == (64, 192)
    assert max(Counter(lengths).values()) < 12
