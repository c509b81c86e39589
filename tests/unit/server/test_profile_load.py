"""The load of a profile: what its fields come to, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import Arrival, Endpoint, Slo
from gpu_dash.model.profile import Profile
from gpu_dash.model.token_spread import SpreadKind
from gpu_dash.server.profile_file import read_profile

SERVER = '[server]\nmodel = "acme/tiny"\n'


def read(tmp_path: Path, load: str, more: str = SERVER) -> Profile:
    file = tmp_path / "mine.toml"
    file.write_text(f"{more}[load]\n{load}\n", encoding="utf-8")
    return read_profile(file)


def test_every_field_reaches_the_plan(tmp_path: Path) -> None:
    plan = read(
        tmp_path,
        """
        rates = [2.5, 5]
        arrival = "gamma"
        load_procs = 2
        endpoint = "chat"
        dataset = "/data/talks.json"
        turns = 4
        output_tokens = "lognormal:200,100"
        seed = 7
        retries = 2
        slo = "ttft=500ms"
        extra_body = { top_k = 1 }
        headers = { X-Tenant = "blue", X-Key = "$NOT_SET_HERE" }
        """,
    ).plan()
    assert (plan.rates, plan.arrival, plan.workers) == ((2.5, 5.0), Arrival.GAMMA, 2)
    assert (plan.endpoint, plan.dataset, plan.turns) == (Endpoint.CHAT, "/data/talks.json", 4)
    assert plan.output_spread is not None
    assert (plan.output_spread.kind, plan.output_tokens) == (SpreadKind.LOGNORMAL, 200)
    assert (plan.seed, plan.retries, plan.slo) == (7, 2, Slo(ttft_s=0.5))
    assert plan.extra_body == {"top_k": 1}


def test_a_path_is_that_of_the_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert read(tmp_path, 'dataset = "~/p.json"').plan().dataset == f"{tmp_path}/p.json"
    assert read(tmp_path, 'trace = "t.jsonl"').plan().trace == f"{tmp_path}/t.jsonl"


def test_the_fields_of_the_load_come_on_top_of_those_of_the_target(tmp_path: Path) -> None:
    target = '[target]\nbase_url = "http://h:1"\nextra_body = { top_k = 1, n = 2 }\n'
    plan = read(tmp_path, "extra_body = { n = 3 }", target).plan()
    assert plan.extra_body == {"top_k": 1, "n": 3}


@pytest.mark.parametrize(
    ("load", "words"),
    [
        ("rates = [2, 0]", "`load.rates`: [2.0, 0.0] are not requests per second"),
        ("rates = [99999]", "`load.rates`"),
        ("arrival = 'sometimes'", "`load.arrival`"),
        ("requests = 0", "`load.requests`: 0 is out of range"),
        ("load_procs = 65", "`load.load_procs`"),
        ("shared_prefix = 1.5", "`load.shared_prefix`"),
        ("turns = 0", "`load.turns`"),
        ("retries = -1", "`load.retries`"),
        ("seed = -1", "`load.seed`"),
        ("output_tokens = 'many'", "write a number of tokens"),
        ("slo = 'fast'", "write ttft=500ms"),
        ("trace = '/t'\ntrace_speed = 0", "`load.trace_speed`"),
        ("trace = '/t'\nrates = [1]", "`load.trace`"),
        ("turns = 2", "wants the chat endpoint"),
        ("prompt = 'x'\ndataset = '/d'", "give one of them"),
        ("shared_prefix = 0.5\nprompt = 'x'", "only synthetic prompts"),
        ("extra_body = { stream = false }", "'stream' cannot be in it"),
        ("headers = { 'X Y' = '1' }", "a name has letters"),
        ("headers = { Host = 'a' }", "the client sends its own"),
        ("headers = { X = '' }", "its value is empty"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_field(tmp_path: Path, load: str, words: Any) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, load)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "mine.toml" in str(refused.value)
