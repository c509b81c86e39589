"""Runs side by side: which step stands for a load, the ratio, and what makes runs unlike."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_dash.analysis.comparison import Comparison, RunAtLoad, compare
from gpu_dash.analysis.likeness import Difference, differences
from gpu_dash.analysis.run import Run, names_of
from gpu_dash.model.load import Endpoint, LoadPlan, StepResult


def step(number: int, load: int | None, tokens_per_s: float, **fields: Any) -> StepResult:
    return StepResult(
        **{
            "step": number,
            "concurrency": load,
            "time_s": 10.0 * number,
            "duration_s": 60.0,
            "elapsed_s": 61.0,
            "output_tokens_per_s": tokens_per_s,
            **fields,
        }
    )


def run(*steps: StepResult, **fields: Any) -> Run:
    return Run(**{"session": "s", "plan": LoadPlan(), "steps": steps, **fields})


def at(comparison: Comparison, load: float) -> tuple[RunAtLoad | None, ...]:
    (row,) = [row for row in comparison.loads if load in (row.concurrency, row.request_rate)]
    return row.runs


def ratios(comparison: Comparison, load: float) -> list[float | None]:
    return [None if found is None else found.ratio for found in at(comparison, load)]


def test_steps_meet_by_their_load_and_not_by_their_number() -> None:
    compared = compare(
        [
            run(step(1, 1, 80.0), step(2, 8, 400.0)),
            run(step(1, 8, 320.0), step(2, 1, 88.0)),
            run(step(1, 8, 500.0)),
        ]
    )
    assert [row.concurrency for row in compared.loads] == [1, 8]
    assert ratios(compared, 1) == [1.0, 1.1, None]
    assert ratios(compared, 8) == [1.0, 0.8, 1.25]


def test_a_load_that_only_one_run_has_stays() -> None:
    compared = compare([run(step(1, 1, 80.0)), run(step(1, 64, 900.0))])
    assert at(compared, 1)[1] is None
    assert at(compared, 64)[0] is None
    assert ratios(compared, 64) == [None, None]


def test_open_loops_have_rows_of_their_own_behind_the_closed_ones() -> None:
    closed = run(step(1, 4, 80.0))
    rates = run(step(1, None, 70.0, request_rate=4.0), step(2, None, 75.0, request_rate=2.5))
    compared = compare([closed, rates])
    assert [(row.concurrency, row.request_rate) for row in compared.loads] == [
        (4, None),
        (None, 2.5),
        (None, 4.0),
    ]
    assert compared.runs[1].best_request_rate == 2.5


def test_of_several_steps_at_one_load_the_last_stands_and_the_range_is_kept() -> None:
    compared = compare([run(step(1, 8, 400.0), step(2, 8, 380.0), step(3, 8, 390.0))] * 2)
    (found, _) = at(compared, 8)
    assert found is not None
    assert (found.step.step, found.repeats) == (3, 3)
    assert (found.lowest_output_tokens_per_s, found.highest_output_tokens_per_s) == (380, 400)


def test_a_client_bound_step_stands_only_where_there_is_no_other_and_has_no_ratio() -> None:
    bound = {"client_bound": True}
    compared = compare(
        [
            run(step(1, 8, 400.0), step(2, 8, 100.0, **bound), step(3, 16, 700.0)),
            run(step(1, 8, 200.0), step(2, 16, 350.0, **bound)),
        ]
    )
    assert ratios(compared, 8) == [1.0, 0.5]
    assert ratios(compared, 16) == [1.0, None]
    assert [found.step.client_bound for found in at(compared, 16) if found] == [False, True]
    assert compared.runs[1].best_concurrency == 8


@pytest.mark.parametrize(
    ("plan", "duration_s", "is_cut"),
    [
        (LoadPlan(step_s=60.0), 59.0, False),
        (LoadPlan(step_s=60.0), 12.0, True),
        (LoadPlan(step_s=60.0, requests=100), 12.0, False),
        (None, 12.0, False),
    ],
)
def test_a_window_that_was_ended_before_its_time_is_marked(
    plan: LoadPlan | None, duration_s: float, is_cut: bool
) -> None:
    cut = run(step(1, 8, 400.0, duration_s=duration_s), plan=plan)
    (found, _) = at(compare([cut, cut]), 8)
    assert found is not None
    assert found.is_cut_short is is_cut


def test_no_throughput_in_the_first_run_gives_no_ratio() -> None:
    compared = compare([run(step(1, 8, 0.0)), run(step(1, 8, 10.0))])
    assert ratios(compared, 8) == [None, None]
    assert compared.runs[0].best_output_tokens_per_s is None


def test_runs_without_steps_have_a_legend_and_no_rows() -> None:
    compared = compare([run(), run()])
    assert compared.loads == ()
    assert compared.runs[0].best_concurrency is None


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        ([{"label": "a"}, {"label": "b"}], ("a", "b")),
        ([{"label": "a"}, {"label": ""}], ("s0", "s1")),
        ([{"label": "a"}, {"label": "a"}], ("s0", "s1")),
        (
            [{"session": "s", "folder": "/x/s"}, {"session": "s", "folder": "/y/s"}],
            ("/x/s", "/y/s"),
        ),
        ([{"session": "s"}, {"session": "s"}], ("s (1)", "s (2)")),
    ],
)
def test_a_name_tells_a_run_from_the_others(
    runs: list[dict[str, Any]], names: tuple[str, ...]
) -> None:
    made = [Run(**{"session": f"s{number}", **fields}) for number, fields in enumerate(runs)]
    assert names_of(made) == names


PLAN = LoadPlan(prompt_tokens=512)


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (
            {"plan": LoadPlan(output_tokens=256)},
            {"plan": LoadPlan(output_tokens=128)},
            "not the same requests: output tokens 256 / 128",
        ),
        (
            {"plan": PLAN},
            {"plan": LoadPlan(dataset="/data/chat.jsonl")},
            "not the same requests: prompt 512 synthetic tokens / dataset chat.jsonl",
        ),
        (
            {"plan": LoadPlan(endpoint=Endpoint.CHAT)},
            {"plan": LoadPlan()},
            "not the same requests: API chat / completions",
        ),
        (
            {"plan": LoadPlan(seed=7)},
            {"plan": LoadPlan()},
            "not the same requests: seed 7 / new each time",
        ),
        (
            {"plan": LoadPlan(extra_body={"top_k": 1})},
            {"plan": LoadPlan()},
            'not the same requests: further fields {"top_k":1} / {}',
        ),
        (
            {"plan": LoadPlan(warmup_s=5)},
            {"plan": LoadPlan(warmup_s=0.5)},
            "not measured alike: warm-up 5 s / 0.5 s",
        ),
        (
            {"plan": LoadPlan(step_s=60)},
            {"plan": LoadPlan(requests=500)},
            "not measured alike: step 60 s / 500 requests",
        ),
        (
            {"plan": LoadPlan(rates=(2.0,))},
            {"plan": LoadPlan()},
            "not measured alike: loop open, poisson / closed",
        ),
        (
            {"tokens_are_chunks": True},
            {"tokens_are_chunks": False},
            "not measured alike: tokens counted from chunks / usage",
        ),
        ({"plan": None}, {"plan": PLAN}, "what was asked: not known / recorded"),
        ({"model": "a/7b"}, {"model": "a/32b"}, "not the same server: model a/7b / a/32b"),
        (
            {"vllm_version": "0.26.0"},
            {"vllm_version": ""},
            "not the same server: vLLM 0.26.0 / not known",
        ),
        (
            {"arguments": ("vllm", "serve", "m", "--max-num-seqs=64", "--port", "1")},
            {"arguments": ("vllm", "serve", "m", "--port", "2", "--enforce-eager")},
            "not the same server: --max-num-seqs 64 / left out",
        ),
    ],
)
def test_what_makes_runs_unlike_is_said_in_words(
    first: dict[str, Any], second: dict[str, Any], sentence: str
) -> None:
    found = differences([run(**first), run(**second)])
    assert any(difference.sentence.endswith(sentence) for difference in found)
    assert not any("--port" in difference.aspect for difference in found)


def test_two_texts_of_one_length_are_told_apart() -> None:
    (found,) = differences([run(plan=LoadPlan(prompt=text)) for text in ("one", "two")])
    assert found.values[0] != found.values[1]
    assert "3 characters" in found.values[0]


def test_answers_of_another_length_than_asked_for_are_not_the_same_work() -> None:
    long = run(step(1, 8, 1.0, requests_ok=10, output_tokens=2560))
    short = run(step(1, 8, 1.0, requests_ok=10, output_tokens=1280))
    failed = step(2, 8, 1.0, requests_ok=10, requests_failed=90, output_tokens=2560)
    (found,) = differences([long, short])
    assert found.sentence.endswith("tokens per answer that came: 256 / 128")
    assert differences([long, run(*long.steps, failed)]) == ()


def test_equal_runs_have_no_difference() -> None:
    same = run(step(1, 8, 1.0), model="m", arguments=("vllm", "--port", "1"))
    assert differences([same, same, same]) == ()


def test_three_runs_have_three_values() -> None:
    (found,) = differences([run(model=name) for name in ("a", "b", "a")])
    assert isinstance(found, Difference)
    assert found.values == ("a", "b", "a")
