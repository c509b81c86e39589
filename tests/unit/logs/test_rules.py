"""Every rule against its own lines: those that match it and those that must not."""

from __future__ import annotations

import re

import pytest
from _pytest.mark import ParameterSet

from gpu_dash.logs.rules import RULES
from gpu_dash.logs.rules.kinds import CALLER_KINDS, KINDS
from gpu_dash.logs.rules.rule import Rule
from gpu_dash.logs.rules.ruleset import RuleSet
from gpu_dash.logs.rules.voice import Voice
from gpu_dash.logs.stage import Stage
from gpu_dash.model.log import Severity
from tests.unit.logs.saying import found


def name_of(rule: Rule) -> str:
    return f"{RULES.index(rule):02}-{rule.kind or 'ignored'}"


def examples(attribute: str) -> list[ParameterSet]:
    return [
        pytest.param(rule, example, id=f"{name_of(rule)}-{number}")
        for rule in RULES
        for number, example in enumerate(getattr(rule, attribute))
    ]


@pytest.mark.parametrize(("rule", "example"), examples("matches"))
def test_a_line_that_matches_is_found(rule: Rule, example: str) -> None:
    findings = found(*example.split("\n"))

    if rule.is_ignored:
        assert findings == []
        return
    last = [finding for finding in findings if finding.line == example.count("\n") + 1]
    assert [finding.kind for finding in last] == [rule.kind]
    assert last[0].first_check


@pytest.mark.parametrize(("rule", "example"), examples("rejects"))
def test_a_line_that_must_not_match_is_not_found(rule: Rule, example: str) -> None:
    assert rule.kind not in [finding.kind for finding in found(*example.split("\n"))]


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_a_rule_is_shown_by_lines(rule: Rule) -> None:
    assert rule.matches
    assert rule.is_ignored or rule.rejects
    assert rule.is_ignored or rule.kind in KINDS


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_a_rule_names_no_line_number_of_a_source(rule: Rule) -> None:
    """They change with every release."""
    expressions = (*rule.phrases, rule.pattern, rule.unless, rule.values)
    assert not any(re.search(r"\.(?:py|cpp|cc|cuh?):\\?d?\d", text) for text in expressions)


def test_every_kind_is_found_by_a_rule() -> None:
    assert {rule.kind for rule in RULES if rule.kind} | {"python_error"} == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_says_what_it_means_and_what_to_do(name: str) -> None:
    assert KINDS[name].name == name
    assert KINDS[name].meaning
    assert KINDS[name].first_check


def test_the_cures_of_two_memory_errors_are_opposite() -> None:
    assert KINDS["oom_kv_none"].first_check == "raise --gpu-memory-utilization"
    assert "lower --gpu-memory-utilization" in KINDS["oom_runtime"].checks


def test_callers_mistakes_are_warnings() -> None:
    assert {KINDS[name].severity for name in CALLER_KINDS} == {Severity.WARNING}


def test_the_first_rule_of_the_table_decides() -> None:
    special = Rule("tp_size", ("heads",), matches=("x",))
    general = Rule("model_config", ("heads", "model"), matches=("x",))

    match = RuleSet([special, general]).match(Voice.RAW, "a model with 3 heads")

    assert match is not None
    assert match.rule is special


def test_a_rule_is_not_tried_in_a_voice_that_it_does_not_name() -> None:
    rules = RuleSet([Rule("tp_size", ("heads",))])

    assert rules.match(Voice.FAILURE, "3 heads") is not None
    assert rules.match(Voice.NOTE, "3 heads") is None


@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        (Stage.STARTING, "oom_load"),
        (Stage.LOADING, "oom_load"),
        (Stage.PROFILING, "oom_warmup_capture"),
        (Stage.COMPILING, "oom_warmup_capture"),
        (Stage.CAPTURING, "oom_warmup_capture"),
        (Stage.SERVING, "oom_runtime"),
        (Stage.UNKNOWN, "oom_runtime"),
    ],
)
def test_running_out_of_memory_has_another_kind_at_each_stage(stage: Stage, kind: str) -> None:
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."

    match = RuleSet(RULES).match(Voice.RAW, message, (), stage)

    assert match is not None
    assert match.rule.kind == kind


def test_where_it_happened_counts_more_than_the_stage() -> None:
    message = "torch.OutOfMemoryError: CUDA out of memory."
    frames = ['  File "gpu_model_runner.py", line 5, in capture_model']

    match = RuleSet(RULES).match(Voice.RAW, message, frames, Stage.LOADING)

    assert match is not None
    assert match.rule.kind == "oom_warmup_capture"


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (
            "ValueError: The model's max seq len (8192) is larger than the maximum number of "
            "tokens that can be stored in KV cache (2400).",
            "set --max-model-len to 2400 or less, or raise --gpu-memory-utilization",
        ),
        (
            "ValueError: Total number of attention heads (28) must be divisible by tensor "
            "parallel size (8).",
            "a --tensor-parallel-size that divides 28, or --pipeline-parallel-size",
        ),
        (
            "vllm: error: unrecognized arguments: --swap-space 8",
            "--swap-space was removed in 0.18.0: delete it",
        ),
        (
            "ModuleNotFoundError: No module named 'xgrammar'",
            "install xgrammar in the server's environment, in the version vLLM pins",
        ),
        (
            "ValueError: Free memory on device (3.37/79.1 GiB) on startup is less than desired "
            "GPU memory utilization (0.9, 71.19 GiB).",
            "3.37 of 79.1 GiB are free: end the other process on that GPU; if there is none, "
            "lower --gpu-memory-utilization",
        ),
    ],
)
def test_the_advice_uses_what_the_line_says(line: str, advice: str) -> None:
    (finding,) = found(line)

    assert finding.first_check == advice
