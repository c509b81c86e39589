"""What the options make of a plan, and what they cannot mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from gpu_dash.cli.load_options import load_options, plan_of
from gpu_dash.cli.options import headers_of
from gpu_dash.model.errors import UsageError
from gpu_dash.model.headers import Headers
from gpu_dash.model.load import Arrival, Endpoint, LoadPlan
from gpu_dash.model.token_spread import SpreadKind, TokenSpread


def options_of(*arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = {}

    @click.command
    @load_options
    def command(**options: Any) -> None:
        told.update(options)

    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return told


def made(*arguments: str, plan: LoadPlan | None = None) -> LoadPlan:
    return plan_of(plan or LoadPlan(), options_of(*arguments))


def test_without_options_the_profile_stands() -> None:
    plan = LoadPlan(rates=(2.0,), prompt="Hi", output_tokens=9, requests=4)
    assert made(plan=plan) == plan


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        (["--ramp", "1,4"], {"ramp": (1, 4)}),
        (["--rate", "2,8.5", "--arrival", "gamma"],
         {"rates": (2.0, 8.5), "arrival": Arrival.GAMMA}),
        (["--chat", "--turns", "3"], {"endpoint": Endpoint.CHAT, "turns": 3}),
        (["--output-tokens", "40"], {"output_tokens": 40}),
        (["--output-tokens", "normal:99.6,5"],
         {"output_tokens": 100,
          "output_spread": TokenSpread(kind=SpreadKind.NORMAL, mean=99.6, deviation=5)}),
        (["--retries", "2", "--seed", "7", "--load-procs", "2"],
         {"retries": 2, "seed": 7, "workers": 2}),
        (["--requests", "5", "--warmup", "0s"], {"requests": 5, "warmup_s": 0.0}),
        (["--extra-body", '{"top_k": 1}'], {"extra_body": {"top_k": 1}}),
        (["--shared-prefix", "0.5"], {"shared_prefix": 0.5}),
    ],
)  # fmt: skip
def test_what_the_options_say(arguments: list[str], changes: dict[str, Any]) -> None:
    assert made(*arguments) == LoadPlan(**changes)


def test_an_option_takes_the_place_of_what_the_profile_says(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text(json.dumps({"prompt": "p"}))
    profile = LoadPlan(
        rates=(2.0,), prompt="Hi", requests=4,
        output_spread=TokenSpread(kind=SpreadKind.NORMAL, mean=9, deviation=1),
    )  # fmt: skip
    assert made("--ramp", "3", plan=profile).rates == ()
    assert made("--step", "2s", plan=profile).requests is None
    assert made("--prompt-tokens", "3", plan=profile).prompt is None
    assert made("--output-tokens", "3", plan=profile).output_spread is None
    with_file = made("--dataset", str(file), plan=profile)
    assert (with_file.prompt, with_file.dataset) == (None, str(file))


def test_a_trace_is_one_step(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text("".join(json.dumps({"at": n}) + "\n" for n in range(3)))
    plan = made("--trace", str(file), "--trace-speed", "2", plan=LoadPlan(prompt="Hi"))
    assert (plan.trace, plan.prompt, plan.rates, plan.requests) == (str(file), None, (2.0,), 3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ramp", "1", "--rate", "1"], "--ramp and --rate"),
        (["--prompt", "a", "--prompt-tokens", "1"], "--prompt and --prompt-tokens"),
        (["--prompt", "a", "--dataset", "b"], "--prompt and --dataset"),
        (["--shared-prefix", "1", "--dataset", "b"], "--shared-prefix and --dataset"),
        (["--step", "1s", "--requests", "3"], "--step and --requests"),
        (["--warmup", "1s", "--requests", "3"], "--warmup and --requests"),
        (["--trace", "x", "--rate", "3"], "--trace and --rate"),
        (["--trace", "x", "--turns", "3"], "--trace and --turns"),
        (["--trace", "/no/such", "--warmup", "3s"], "--warmup and --trace"),
        (["--trace", "/no/such"], "No such file"),
        (["--trace-speed", "2"], "give --trace too"),
        (["--arrival", "gamma"], "give --rate too"),
        (["--dataset", "/no/such"], "No such file"),
        (["--step", "0s"], "0 is no length"),
        (["--turns", "2"], "wants the chat endpoint"),
        (["--turns", "2", "--chat", "--prompt", "x"], "turns and prompt"),
        (["--rate", "1e6"], "requests per second"),
        *(
            (["--extra-body", json.dumps({name: 1})], f"'{name}' cannot be in it")
            for name in ("model", "prompt", "messages", "max_tokens", "stream")
        ),
    ],
)
def test_what_cannot_be_meant_is_one_line(arguments: list[str], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        made(*arguments)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_headers_of_a_profile_and_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", "s3cret")
    options = options_of("--header", "X-Tenant: red:1", "--header", "x-key:${OUR_KEY}")
    headers = headers_of({"x-tenant": "blue", "X-More": "$OUR_KEY"}, options["headers"])
    assert headers == Headers(
        plain=(("X-Tenant", "red:1"),), secret=(("X-More", "s3cret"), ("x-key", "s3cret"))
    )


@pytest.mark.parametrize(
    "header",
    ["sk-a-key-that-was-pasted", "X Y: 1", ": 1", "X:", "X: a\nB: 2", "X: é", "X: $NOT_SET_HERE",
     "Host: a", "content-length: 3", "Authorization: Bearer x"],
)  # fmt: skip
def test_a_header_that_cannot_be_sent_is_refused_without_its_value(header: str) -> None:
    with pytest.raises(UsageError) as refused:
        headers_of({}, [header], has_key=True)
    assert "pasted" not in str(refused.value)
    assert "\n" not in str(refused.value)
