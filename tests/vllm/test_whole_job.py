"""The whole job against a real vLLM: launch, ramp, record, stop, and nothing left."""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.processes import describe
from tests.vllm.job import END_TIMEOUT_S, LAUNCH_TIMEOUT_S, Job, start_job

RAMP = (1, 2, 4, 8)
OUTPUT_TOKENS = 32
STEP_S = 10
RAMP_TIMEOUT_S = len(RAMP) * (STEP_S + 30)

SESSION_FILES = {
    *("session.toml", "gpu.csv", "requests.csv", "steps.csv"),
    *("server.csv", "events.csv", "server.log"),
}

pytestmark = pytest.mark.timeout(LAUNCH_TIMEOUT_S + RAMP_TIMEOUT_S + END_TIMEOUT_S)


@dataclass(frozen=True)
class FinishedJob:
    """A run that is over."""

    job: Job
    exit_code: int
    steps: list[dict[str, Any]]
    conclusion: dict[str, Any]


@pytest.fixture(scope="module")
def finished(vllm_profile: Path) -> Iterator[FinishedJob]:
    """One run for all tests of this module: it takes two to three minutes."""
    home = Path(tempfile.mkdtemp(prefix="gd-", dir="/tmp"))
    job = start_job(
        *(vllm_profile, home, "--ramp", ",".join(map(str, RAMP))),
        *("--step", f"{STEP_S}s", "--output-tokens", str(OUTPUT_TOKENS)),
    )
    try:
        exit_code = job.exit_code(LAUNCH_TIMEOUT_S + RAMP_TIMEOUT_S + END_TIMEOUT_S)
        objects = job.objects()
        assert objects, job.stderr()
        yield FinishedJob(job, exit_code, objects[:-1], objects[-1])
    finally:
        for process in job.server_processes():
            process.kill()
        job.process.kill()
        job.process.wait()
        shutil.rmtree(home)


def test_it_prints_one_object_per_step(finished: FinishedJob) -> None:
    assert [step["step"] for step in finished.steps] == [1, 2, 3, 4]
    assert [step["concurrency"] for step in finished.steps] == list(RAMP)
    for step in finished.steps:
        assert step["requests_ok"] > 0
        assert step["requests_failed"] == 0
        assert step["output_tokens_per_s"] > 0
        assert step["duration_s"] == pytest.approx(STEP_S, abs=0.5)
        assert 0 < step["ttft_p50_s"] <= step["e2e_p50_s"]


def test_more_requests_at_once_give_more_tokens(finished: FinishedJob) -> None:
    assert finished.steps[-1]["output_tokens_per_s"] > finished.steps[0]["output_tokens_per_s"]


def test_its_exit_code_is_its_verdict(finished: FinishedJob) -> None:
    verdict = finished.conclusion["verdict"]
    failed = any(condition["passed"] is False for condition in verdict["conditions"])

    assert len(verdict["conditions"]) == 3
    assert finished.exit_code == (1 if failed else 0)
    assert finished.conclusion["session"] == str(finished.job.folder)
    assert "knee_concurrency" in finished.conclusion


def test_it_leaves_the_seven_files(finished: FinishedJob) -> None:
    names = {path.name for path in finished.job.folder.iterdir()}
    assert names >= SESSION_FILES
    session = tomllib.loads((finished.job.folder / "session.toml").read_text(encoding="utf-8"))
    assert session
    assert finished.job.rows("server.csv")
    assert finished.job.rows("events.csv")


def test_the_steps_agree_with_the_requests(finished: FinishedJob) -> None:
    requests = finished.job.rows("requests.csv")
    written = finished.job.rows("steps.csv")

    assert [int(row["step"]) for row in written] == [step["step"] for step in finished.steps]
    for step, row in zip(finished.steps, written, strict=True):
        own = [request for request in requests if int(request["step"]) == step["step"]]
        in_window = sum(int(request["tokens_in_window"]) for request in own)
        assert len(own) == step["requests_ok"]
        assert {request["outcome"] for request in own} == {"ok"}
        assert {int(request["output_tokens"]) for request in own} == {OUTPUT_TOKENS}
        assert step["output_tokens"] == OUTPUT_TOKENS * len(own)
        assert step["output_tokens_per_s"] == pytest.approx(
            in_window / step["duration_s"], rel=0.001
        )
        assert float(row["output_tokens_per_s"]) == pytest.approx(
            step["output_tokens_per_s"], rel=0.001
        )


def test_the_log_is_vllms_own(finished: FinishedJob) -> None:
    log = (finished.job.folder / "server.log").read_text(encoding="utf-8", errors="replace")
    assert "Application startup complete" in log


def test_no_process_is_left(finished: FinishedJob) -> None:
    assert [describe(process) for process in finished.job.processes_left()] == []
