"""What each request asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpu_dash.load.prompt import DEFAULT_PROMPT_TOKENS, RequestBodies
from gpu_dash.model.load import Endpoint, LoadPlan

CHAT = LoadPlan(endpoint=Endpoint.CHAT, prompt_tokens=100, seed=1)


def bodies(plan: LoadPlan, *requests: int) -> list[Any]:
    maker = RequestBodies("m", plan)
    return [json.loads(maker.make(request)) for request in requests]


def words(body: dict[str, Any]) -> int:
    return len(body["messages"][0]["content"].split())


def test_a_completion_asks_for_streamed_tokens_and_their_usage() -> None:
    (body,) = bodies(LoadPlan(prompt="Hi", output_tokens=9), 1)
    assert body == {
        "model": "m",
        "prompt": "Hi",
        "max_tokens": 9,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
    }


def test_a_chat_asks_with_one_message_and_leaves_out_what_is_not_wanted() -> None:
    (body,) = bodies(LoadPlan(endpoint=Endpoint.CHAT, prompt="Hi", ignore_eos=False), 1)
    assert body["messages"] == [{"role": "user", "content": "Hi"}]
    assert "prompt" not in body
    assert "ignore_eos" not in body


def test_the_extra_body_has_the_last_word() -> None:
    plan = LoadPlan(prompt="Hi", extra_body={"temperature": 0.7, "n": 2, "prompt": "Ho"})
    (body,) = bodies(plan, 1)
    assert (body["temperature"], body["n"], body["prompt"]) == (0.7, 2, "Ho")


def test_a_synthetic_prompt_has_the_asked_length_in_ids_that_every_model_has() -> None:
    one, other = bodies(LoadPlan(prompt_tokens=1000), 1, 2)
    assert len(one["prompt"]) == len(other["prompt"]) == 1000
    assert 300 <= min(one["prompt"]) < max(one["prompt"]) < 600
    (default,) = bodies(LoadPlan(), 1)
    assert len(default["prompt"]) == DEFAULT_PROMPT_TOKENS


@pytest.mark.parametrize("endpoint", Endpoint)
def test_each_request_has_a_prompt_of_its_own_from_its_first_token_on(endpoint: Endpoint) -> None:
    plan = LoadPlan(endpoint=endpoint, prompt_tokens=64, seed=3)
    heads = [str(body.get("prompt") or body["messages"])[:80] for body in bodies(plan, *range(99))]
    assert len(set(heads)) == 99


@pytest.mark.parametrize("endpoint", Endpoint)
def test_a_seed_reproduces_the_prompts_and_another_makes_others(endpoint: Endpoint) -> None:
    plan = LoadPlan(endpoint=endpoint, prompt_tokens=64, seed=3)
    assert bodies(plan, 7, 5) == [bodies(plan, 5)[0], bodies(plan, 7)[0]][::-1]
    assert bodies(plan, 7) != bodies(msgspec.structs.replace(plan, seed=4), 7)


def test_a_chat_prompt_comes_to_its_length_by_usage() -> None:
    maker = RequestBodies("m", CHAT)
    for request in range(1, 12):
        body = json.loads(maker.make(request))
        prompt_tokens = round(1.3 * words(body)) + 20
        maker.learn(request, prompt_tokens)
    assert prompt_tokens == pytest.approx(100, rel=0.03)


def test_answers_to_older_prompts_do_not_correct_twice() -> None:
    maker = RequestBodies("m", CHAT)
    for request in range(1, 33):
        maker.make(request)
    for request in range(1, 33):
        maker.learn(request, 200)
    assert words(json.loads(maker.make(33))) == 50


def test_a_usage_without_prompt_tokens_corrects_nothing() -> None:
    maker = RequestBodies("m", CHAT)
    maker.make(1)
    maker.learn(1, 0)
    assert words(json.loads(maker.make(2))) == 100


def test_a_server_that_counts_the_same_for_every_prompt_does_not_make_them_grow() -> None:
    maker = RequestBodies("m", CHAT)
    for request in range(1, 20):
        maker.make(request)
        maker.learn(request, 8)
    assert words(json.loads(maker.make(20))) == 200


def test_a_shared_prefix_is_the_same_in_every_request_and_the_rest_is_not() -> None:
    for plan in (CHAT, msgspec.structs.replace(CHAT, endpoint=Endpoint.COMPLETIONS)):
        maker = RequestBodies("m", msgspec.structs.replace(plan, shared_prefix=0.75))
        prompts = []
        for request in (1, 2):
            body = json.loads(maker.make(request))
            chat = body.get("messages", [{"content": ""}])[0]["content"].split()
            prompts.append(body.get("prompt", chat))
        assert len(prompts[0]) == 100
        assert prompts[0][:75] == prompts[1][:75]
        assert prompts[0][75:] != prompts[1][75:]


def test_a_file_gives_each_prompt_once_before_it_gives_one_again(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text("".join(json.dumps({"prompt": f"p{number}"}) + "\n" for number in range(5)))
    plan = LoadPlan(dataset=str(file), seed=3)
    made = [json.loads(RequestBodies("m", plan).make(number))["prompt"] for number in range(1, 11)]
    assert sorted(made[:5]) == sorted(made[5:]) == ["p0", "p1", "p2", "p3", "p4"]
    assert made[:5] == made[5:] != sorted(made[:5])
