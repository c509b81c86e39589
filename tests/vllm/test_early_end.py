"""A run whose server dies, or that is interrupted: the right exit code, and nothing left."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from tests.processes import describe
from tests.vllm.job import END_TIMEOUT_S, LAUNCH_TIMEOUT_S, Job, start_job

pytestmark = pytest.mark.timeout(LAUNCH_TIMEOUT_S + 2 * END_TIMEOUT_S)


@pytest.fixture
def job_in_second_step(vllm_profile: Path, private_home: Path) -> Job:
    """A run that has printed its first step and works on its second, of three."""
    job = start_job(
        *(vllm_profile, private_home, "--ramp", "1,2,4"),
        *("--step", "10s", "--warmup", "1s", "--output-tokens", "32"),
    )
    job.wait_for_objects(1)
    assert job.objects()[0]["requests_ok"] > 0
    return job


def server_process(job: Job, role: str) -> psutil.Process:
    """A process of vLLM's by its role.

    Args:
        job: the run whose server it is.
        role: what its command line holds: ``vllm serve``'s own or the title it gives itself.
    """
    commands = {process: " ".join(process.cmdline()) for process in job.server_processes()}
    found = [
        process
        for process, command in commands.items()
        if role in command and "gpu_dash.server.keeper" not in command
    ]
    assert found, commands
    return found[0]


@pytest.mark.parametrize("role", ["/vllm serve ", "VLLM::EngineCore", "VLLM::Worker"])
def test_a_server_that_is_killed_ends_the_run(job_in_second_step: Job, role: str) -> None:
    job = job_in_second_step

    server_process(job, role).kill()

    assert job.exit_code(END_TIMEOUT_S) == 3
    assert "Traceback" not in job.stderr()
    assert len(job.rows("steps.csv")) >= 1
    assert [describe(process) for process in job.processes_left()] == []


def test_ctrl_c_keeps_what_was_measured(job_in_second_step: Job) -> None:
    job = job_in_second_step

    job.process.send_signal(signal.SIGINT)

    assert job.exit_code(END_TIMEOUT_S) == 130
    assert "Traceback" not in job.stderr()
    assert len(job.rows("steps.csv")) >= 1
    assert len(job.rows("requests.csv")) >= 1
    assert [describe(process) for process in job.processes_left()] == []
