"""``gpu-dash sessions``: list, show, export."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpu_dash.analysis.verdict import Condition, Verdict
from gpu_dash.cli.sessions import command
from gpu_dash.model.errors import RecordError
from gpu_dash.record.export import SAMPLE_COLUMNS
from gpu_dash.record.folder import sessions_root
from tests.unit.record.recorded import read_csv, record, session_events

NAME = "20270115-080000-warm"
VERDICT = Verdict(
    passed=False,
    conditions=(
        Condition(name="every_gpu_worked", passed=True, detail="gpu 0, 1 busy under load"),
        Condition(name="throughput_held", passed=None, detail="fewer than two steps"),
        Condition(name="temperature_margin", passed=False, detail="throttled thermally: gpu 1"),
    ),
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    state = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state))
        folder = sessions_root() / NAME
        folder.mkdir(parents=True)
        record(folder, session_events(), session=NAME, label="\x1b[2Jwarm", verdict=VERDICT)
        other = sessions_root() / "20270116-090000-other"
        other.mkdir()
        record(other, [], session=other.name)
    return state


@pytest.fixture
def folder(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(recorded))
    return sessions_root() / NAME


def run(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_list_has_one_line_per_session(folder: Path) -> None:
    head, first, second = run("list").splitlines()
    assert head.split()[:2] == ["SESSION", "STARTED"]
    assert first.split()[0] == NAME
    for words in (
        "2027-01-15 08:00:00",
        "1:00",
        "acme/model-7b",
        "tok/s at 4",
        "90 °C",
        " kB",
        "FAILED",
    ):
        assert words in first
    assert second.split()[0] == "20270116-090000-other"
    assert "open" in second


def test_list_as_json(folder: Path) -> None:
    first, second = json.loads(run("list", "--json"))
    assert first["session"] == NAME
    assert first["folder"] == str(folder)
    assert first["size_bytes"] == sum(file.stat().st_size for file in folder.iterdir())
    assert (first["steps"], first["duration_s"], first["best_concurrency"]) == (2, 60.0, 4)
    assert first["gpus"] == ["Acme T100", "Acme T100"]
    assert first["verdict"]["passed"] is False
    assert second["verdict"] is None
    assert second["best_output_tokens_per_s"] is None


def test_list_of_nothing_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert "gpu-dash demo" in run("list")
    assert json.loads(run("list", "--json")) == []


def test_one_broken_session_does_not_hide_the_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name, text in (("a", "broken ["), ("b", None)):
        (sessions_root() / name).mkdir(parents=True)
        path = sessions_root() / name / "session.toml"
        path.write_text(text or (folder / "session.toml").read_text())
    result = invoke("list")
    assert result.exit_code == 0
    assert NAME in result.stdout
    assert "session.toml" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", [NAME, "20270115", "path"])
def test_show_tells_what_ran_its_steps_and_what_was_found(folder: Path, name: str) -> None:
    text = run("show", str(folder) if name == "path" else name)
    for words in (
        "acme/model-7b",
        "2 × Acme T100",
        "NO: throttled thermally: gpu 1",
        "not judged: fewer than two steps",
        "throttle_begin",
        "nccl_timeout",
        "CLOCK DEFICIT",
    ):
        assert words in text
    assert "\x1b" not in text
    steps = [
        line.split()
        for line in text.splitlines()
        if line.startswith(("1  ", "2  ")) and " ms " in line
    ]
    assert [words[:2] for words in steps] == [["1", "1"], ["2", "4"]]


def test_show_last_and_an_empty_session(folder: Path) -> None:
    assert "20270116-090000-other" in run("show", "last")


def test_show_as_json(folder: Path) -> None:
    shown = json.loads(run("show", NAME, "--json"))
    assert [step["concurrency"] for step in shown["steps"]] == [1, 4]
    assert {finding["kind"] for finding in shown["findings"]} >= {"nccl_timeout", "throttle_begin"}
    assert shown["verdict"]["conditions"][1]["passed"] is None


def test_export_as_json_has_everything_under_the_names_of_the_columns(folder: Path) -> None:
    exported = json.loads(run("export", NAME, "--format", "json"))
    assert exported["meta"]["session"] == NAME
    for name in ("steps", "requests", "events", "server", "gpu", "gpu_fast"):
        rows = read_csv(folder / f"{name}.csv")
        assert len(exported[name]) == len(rows) > 0, name
        assert list(exported[name][0]) == list(rows[0]), name
    step = exported["steps"][1]
    assert (step["concurrency"], step["request_rate"], step["client_bound"]) == (4, None, False)
    hot = [row for row in exported["gpu"] if row["throttle_reasons"]]
    assert hot[0]["throttle_reasons"] == ["hw_thermal", "sw_power_cap"]
    (began,) = [row for row in exported["events"] if row["kind"] == "throttle_begin"]
    assert began["data"]["gpu"] == 1


def check_samples(samples: list[dict[str, Any]], folder: Path) -> None:
    rows = read_csv(folder / "gpu.csv")
    assert len(samples) == len(rows)
    for sample, row in zip(samples, rows, strict=True):
        assert tuple(sample) == SAMPLE_COLUMNS == ("ts", "gpu", "temp", "power", "sm_clk", "util")
        assert float(sample["ts"]) == pytest.approx(
            1_800_000_000.5 + float(row["time_s"]), abs=2e-3
        )
        for short, column in (
            ("gpu", "gpu"),
            ("temp", "temperature_celsius"),
            ("power", "power_watts"),
            ("sm_clk", "sm_clock_mhz"),
            ("util", "utilization_percent"),
        ):
            assert float(sample[short]) == float(row[column])


def test_both_formats_have_the_flat_list(folder: Path, tmp_path: Path) -> None:
    check_samples(json.loads(run("export", NAME, "--format", "json"))["samples"], folder)
    check_samples(list(csv.DictReader(io.StringIO(run("export", NAME, "--format", "csv")))), folder)
    target = tmp_path / "out.csv"
    assert run("export", NAME, "--format", "csv", "--output", str(target)) == ""
    check_samples(read_csv(target), folder)


def test_an_output_that_cannot_be_written_is_said_in_one_line(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "no" / "where.json"
    result = invoke("export", NAME, "--format", "json", "--output", str(target))
    assert isinstance(result.exception, RecordError)
    assert str(target) in str(result.exception)


@pytest.mark.parametrize("verb", [["show"], ["export", "--format", "csv"]])
def test_an_unknown_session_is_said_in_one_line(folder: Path, verb: list[str]) -> None:
    result = invoke(*verb, "nothing-like-it")
    assert isinstance(result.exception, RecordError)
    assert "sessions list" in str(result.exception)
