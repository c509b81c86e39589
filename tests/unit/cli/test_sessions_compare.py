"""``gpu-dash sessions compare`` on recorded folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpu_dash.cli.sessions import command
from gpu_dash.model.errors import RecordError, UsageError
from gpu_dash.model.load import LoadPlan
from gpu_dash.record.run import read_run
from tests.unit.record.recorded import record, session_events

REFERENCE = Path(__file__).parents[2] / "data" / "h200-tp2"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, ["compare", *map(str, arguments)])


def text_of(*arguments: str | Path) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference as if its cards had been limited to 560 W and half the answer asked for."""
    folder = tmp_path_factory.mktemp("sessions") / "capped"
    shutil.copytree(REFERENCE, folder)
    meta = folder / "session.toml"
    text = meta.read_text().replace('"reference"', '"\\u001b[31mcapped"')
    meta.write_text(text.replace("step_s = 20.0", "step_s = 20.0\noutput_tokens = 128"))
    rows = (folder / "gpu.csv").read_text().replace(",700,", ",560,")
    (folder / "gpu.csv").write_text(rows)
    steps = (folder / "steps.csv").read_text().replace(",3907.6,", ",3516.84,").splitlines()
    (folder / "steps.csv").write_text("\n".join(steps[:9]) + "\n")
    return folder


@pytest.fixture
def synthetic(tmp_path: Path) -> Path:
    record(tmp_path, session_events(), label="small", plan=LoadPlan(ramp=(1, 4)))
    return tmp_path


def test_the_table_has_each_load_of_each_run(capped: Path) -> None:
    text = text_of(REFERENCE, capped)
    assert "not the same requests: output tokens 256 / 128" in text
    assert "2 × NVIDIA H200 at 700 W" in text
    assert "2 × NVIDIA H200 at 560 W" in text
    lines = [line.split() for line in text.splitlines()]
    (first,) = [place for place, words in enumerate(lines) if words[:2] == ["128", "A"]]
    assert lines[first][2:4] == ["3907.6", "1.00"]
    assert lines[first + 1][:3] == ["B", "3516.8", "0.90"]
    assert " ".join(lines[first + 3]).endswith("not run")
    assert "\x1b" not in text


def test_as_json_it_has_the_names_of_the_columns(capped: Path) -> None:
    compared = json.loads(text_of(REFERENCE, capped, "--json"))
    assert [run["name"] for run in compared["runs"]] == ["reference", "\x1b[31mcapped"]
    assert compared["runs"][1]["power_limit_watts"] == [560, 560]
    assert compared["runs"][0]["knee_concurrency"] == 128
    (asked,) = [item for item in compared["differences"] if item["aspect"] == "output tokens"]
    assert asked["values"] == ["256", "128"]
    row = compared["loads"][-1]
    assert (row["concurrency"], row["runs"][1]) == (256, None)
    assert row["runs"][0]["step"]["joules_per_output_token"] == 0.452965


def test_what_a_card_does_not_offer_is_an_empty_cell(synthetic: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("session.toml", "steps.csv"):
        shutil.copy(synthetic / name, bare)
    header, *rows = (bare / "steps.csv").read_text().splitlines()
    places = [header.split(",").index(name) for name in ("peak_temperature_celsius", "tpot_p50_s")]
    cells = [row.split(",") for row in rows]
    for row in cells:
        for place in places:
            row[place] = ""
    (bare / "steps.csv").write_text("\n".join([header, *(",".join(row) for row in cells)]) + "\n")
    text = text_of(synthetic, bare)
    assert "None" not in text
    assert text.count("2 × Acme T100") == 2
    assert " W" not in text
    ran = [line for line in text.splitlines() if line.split()[:1] == ["B"] and "tok/s" not in line]
    assert all(" - " in line for line in ran)
    assert len(ran) == 2


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ([REFERENCE], UsageError),
        ([REFERENCE, f"{REFERENCE}/"], UsageError),
        ([REFERENCE, "/nowhere/at/all"], RecordError),
    ],
)
def test_what_cannot_be_compared_is_refused(
    names: list[str | Path], error: type[Exception]
) -> None:
    assert isinstance(invoke(*names).exception, error)


def test_sessions_without_a_step_say_so(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        record(tmp_path / name, [], session=name)
    text = text_of(tmp_path / "a", tmp_path / "b")
    assert "nothing to compare yet" in text


def test_only_the_cards_of_the_server_count(tmp_path: Path) -> None:
    record(tmp_path, session_events())
    meta = tmp_path / "session.toml"
    text = meta.read_text()
    assert "visible_gpus = [\n    0,\n    1,\n]" in text
    meta.write_text(text.replace("visible_gpus = [\n    0,\n    1,\n]", "visible_gpus = [1]"))
    assert read_run(tmp_path).gpus == ("Acme T100",)


def test_a_server_without_usage_has_its_chunks_counted(tmp_path: Path) -> None:
    assert read_run(REFERENCE).tokens_are_chunks is False
    shutil.copy(REFERENCE / "session.toml", tmp_path)
    assert read_run(tmp_path).tokens_are_chunks is None
    rows = (REFERENCE / "requests.csv").read_text().replace(",ok,,false,", ",ok,,true,")
    (tmp_path / "requests.csv").write_text(rows)
    assert read_run(tmp_path).tokens_are_chunks is True
    broken_off = rows.replace(",ok,,true,", ",disconnected,,true,")
    (tmp_path / "requests.csv").write_text(broken_off)
    assert read_run(tmp_path).tokens_are_chunks is None
