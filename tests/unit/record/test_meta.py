"""``session.toml``: whole, readable, without a key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from gpu_dash.analysis.verdict import Condition, Verdict, not_judged
from gpu_dash.model.errors import RecordError
from gpu_dash.model.load import LoadPlan, Slo
from gpu_dash.model.server import HandleKind
from gpu_dash.record.folder import META_FILE
from gpu_dash.record.meta import SessionMeta, read_meta, write_meta
from tests.unit.record.recorded import ANCHOR, CARDS

FULL = SessionMeta(
    gpu_dash_version="0.1.0",
    session="20260801-120000-x",
    label="a label",
    profile="p",
    model="acme/model-7b",
    base_url="http://127.0.0.1:8000",
    kind=HandleKind.EXTERNAL,
    argv=("vllm", "serve", "acme/model-7b", "--port", "8000"),
    environment_names=("HF_TOKEN",),
    vllm_version="0.33.0",
    gpu_source="nvml",
    visible_gpus=(0, 1),
    boot_id="b",
    utc_offset_s=7200,
    ended_utc="2026-08-01T12:00:00.000Z",
    exit_code=-9,
    knee_concurrency=8,
    rows_lost=3,
    anchor=ANCHOR,
    plan=LoadPlan(
        ramp=(1, 2), prompt="two\nlines", slo=Slo(ttft_s=0.5), extra_body={"a": {"b": 1}}
    ),
    gpus=CARDS,
    verdict=Verdict(
        passed=True,
        conditions=(
            Condition(name="throughput_held", passed=True, detail="x"),
            Condition(name="every_gpu_worked", passed=False, detail="y"),
        ),
    ),
)


@pytest.mark.parametrize("meta", [FULL, SessionMeta(session="s", anchor=ANCHOR)])
def test_what_is_written_comes_back(tmp_path: Path, meta: SessionMeta) -> None:
    write_meta(tmp_path, meta)
    assert read_meta(tmp_path) == meta


def test_a_condition_that_was_not_judged_stays_so(tmp_path: Path) -> None:
    unknown = Verdict(
        passed=True, conditions=(Condition(name="temperature_margin", passed=None, detail="z"),)
    )
    write_meta(tmp_path, msgspec.structs.replace(FULL, verdict=unknown))
    found = read_meta(tmp_path)
    assert found is not None
    assert found.verdict == unknown


def test_a_verdict_that_was_not_given_stays_so(tmp_path: Path) -> None:
    meta = msgspec.structs.replace(FULL, verdict=not_judged("the server failed"))
    write_meta(tmp_path, meta)
    assert read_meta(tmp_path) == meta


def test_no_key_and_no_control_sequence_gets_in(tmp_path: Path) -> None:
    hostile = msgspec.structs.replace(
        FULL,
        label="\x1b]0;title\x07label \u202eevil",
        base_url="http://me:sk-secret@127.0.0.1:8000",
        argv=("vllm", "--api-key", "sk-secret", "--port", "8000"),
        gpus=(msgspec.structs.replace(CARDS[0], name="card\x1b[2J\x00"),),
    )
    write_meta(tmp_path, hostile)
    text = (tmp_path / META_FILE).read_text()
    assert "sk-secret" not in text
    for control in ("\x1b", "\\u001b", "\u202e"):
        assert control not in text
    found = read_meta(tmp_path)
    assert found is not None
    assert (found.label, found.gpus[0].name) == ("label evil", "card")


def test_a_person_reads_when_it_began(tmp_path: Path) -> None:
    write_meta(tmp_path, FULL)
    document = tomllib.loads((tmp_path / META_FILE).read_text())
    assert document["started_utc"] == "2027-01-15T08:00:00.500Z"
    assert document["anchor"] == {"monotonic": 5000.25, "utc": 1_800_000_000.5}


def test_it_is_replaced_in_one_piece_and_private(tmp_path: Path) -> None:
    write_meta(tmp_path, FULL)
    with (tmp_path / META_FILE).open() as old:
        write_meta(tmp_path, SessionMeta(session="new", anchor=ANCHOR))
        assert "acme/model-7b" in old.read()
    assert [path.name for path in tmp_path.iterdir()] == [META_FILE]
    assert (tmp_path / META_FILE).stat().st_mode & 0o777 == 0o600


def test_a_write_that_fails_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_meta(tmp_path, FULL)

    def fail(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpu_dash.record.meta.os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_meta(tmp_path, SessionMeta(session="new", anchor=ANCHOR))
    assert [path.name for path in tmp_path.iterdir()] == [META_FILE]
    assert read_meta(tmp_path) == FULL


def test_a_later_version_may_know_more(tmp_path: Path) -> None:
    write_meta(tmp_path, FULL)
    path = tmp_path / META_FILE
    path.write_text('something_new = "x"\n' + path.read_text())
    assert read_meta(tmp_path) == FULL


@pytest.mark.parametrize(
    "text", ["not toml at all [", "session = 5\n", "x = 1\n", "session='\\xff'"]
)
def test_a_file_that_is_none_of_ours_is_named_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / META_FILE).write_text(text)
    with pytest.raises(RecordError, match=META_FILE) as error:
        read_meta(tmp_path)
    assert "\n" not in str(error.value)


def test_no_file_is_no_error(tmp_path: Path) -> None:
    assert read_meta(tmp_path) is None
