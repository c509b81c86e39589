"""Traces as they are found, and what is wrong with some."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpu_dash.load import trace
from gpu_dash.load.trace import TraceEntry, read_trace, with_trace
from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import LoadPlan

MOONCAKE = """{"timestamp": 27482, "input_length": 600, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 30535, "input_length": 20, "output_length": 26, "hash_ids": [46]}
"""


def entries(tmp_path: Path, text: str) -> tuple[TraceEntry, ...]:
    file = tmp_path / "trace"
    file.write_text(text)
    return read_trace(str(file))


def test_a_mooncake_trace_begins_at_once_and_is_in_milliseconds(tmp_path: Path) -> None:
    assert entries(tmp_path, MOONCAKE) == (
        TraceEntry(0.0, None, 600, 52, (46, 47)),
        TraceEntry(pytest.approx(3.053), None, 20, 26, (46,)),  # type: ignore[arg-type]
    )


def test_a_plain_trace_is_in_seconds_and_may_hold_the_prompts(tmp_path: Path) -> None:
    lines = [
        {"at": 12.5, "prompt": "second", "output_tokens": 3},
        {"at": 10, "prompt": "first"},
        {"at": 10.25, "prompt_tokens": 7},
    ]
    assert entries(tmp_path, "\n\n".join(map(json.dumps, lines))) == (
        TraceEntry(0.0, "first"),
        TraceEntry(0.25, None, 7),
        TraceEntry(2.5, "second", None, 3),
    )


def test_a_trace_may_be_csv_with_a_header(tmp_path: Path) -> None:
    text = "Timestamp,input_length,output_length\r\n1000,40,0\r\n500,30,5\r\n"
    assert entries(tmp_path, text) == (TraceEntry(0.0, None, 30, 5), TraceEntry(0.5, None, 40, 1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no entry in it"),
        ("timestamp,input_length\n", "no entry in it"),
        ('{"at": 1}\n{"at": ', "line 2: "),
        ('{"at": 1}\n[1]\n', "line 2: no JSON object"),
        ('{"input_length": 1}', "line 1: neither `at`"),
        ('{"at": "soon"}', "line 1: `at` is 'soon', not a number"),
        ('{"at": 1e999}', "line 1: `at` is inf"),
        ('{"at": 1, "output_length": -4}', "line 1: `output_length` is -4"),
        ('{"at": 1, "hash_ids": ["x"]}', "line 1: `hash_ids`"),
        ("hello\nworld\n", "line 2: neither `at`"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        entries(tmp_path, text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_trace(str(tmp_path / "none"))


def test_no_more_is_kept_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MAX_ENTRIES", 3)
    assert len(entries(tmp_path, "".join(f'{{"at": {n}}}\n' for n in range(9)))) == 3


def test_a_plan_with_a_trace_is_one_step_of_its_requests_at_its_mean_rate(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    file.write_text("".join(f'{{"at": {n / 4}}}\n' for n in range(8)))
    plan = with_trace(LoadPlan(trace=str(file), trace_speed=2.0))
    assert (plan.rates, plan.requests) == ((8.0,), 8)
    file.write_text('{"at": 3}')
    assert with_trace(LoadPlan(trace=str(file))).requests == 1
    assert with_trace(LoadPlan()) == LoadPlan()
