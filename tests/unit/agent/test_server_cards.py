"""Which cards are the server's, and which one a line of its log is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_dash.agent.server_cards import cards_of_launch, cards_of_process, on_card
from gpu_dash.model.events import Finding
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.log import Severity
from gpu_dash.model.profile import Profile, ServerProfile
from gpu_dash.model.server import HandleKind, ServerStatus
from gpu_dash.model.workers import Parallel

HOST = tuple(
    GpuInfo(gpu=gpu, name="H200", uuid=f"GPU-{gpu}", pci_bus_id=f"0000:{0x90 + gpu:x}:00.0")
    for gpu in range(4)
)


def profile(kind: HandleKind = HandleKind.PROCESS, **server: object) -> Profile:
    made = ServerProfile(model="acme/m", kind=kind, **server)  # type: ignore[arg-type]
    return Profile(server=made, name="p")


def test_a_profile_says_more_than_the_shell_does() -> None:
    shell = {"CUDA_VISIBLE_DEVICES": "0"}
    assert cards_of_launch(profile(), shell, HOST).gpus == (0,)
    own = profile(env={"CUDA_VISIBLE_DEVICES": "GPU-3,1"})
    assert cards_of_launch(own, shell, HOST).gpus == (3, 1)


def test_a_container_counts_the_cards_that_it_was_given() -> None:
    made = profile(
        HandleKind.CONTAINER,
        image="vllm/vllm-openai",
        container_args=["--gpus", '"device=2,3"'],
        env={"CUDA_VISIBLE_DEVICES": "1"},
    )
    assert cards_of_launch(made, {"CUDA_VISIBLE_DEVICES": "0"}, HOST).gpus == (3,)


def running(proc: Path, command: str, environment: str) -> Path:
    (proc / "7").mkdir(parents=True)
    (proc / "7/cmdline").write_bytes(command.replace(" ", "\0").encode() + b"\0")
    (proc / "7/environ").write_bytes(environment.replace(" ", "\0").encode() + b"\0")
    return proc


@pytest.mark.parametrize(
    ("command", "environment", "gpus", "parallel"),
    [
        ("vllm serve m -tp 2", "CUDA_VISIBLE_DEVICES=3,1,0", (3, 1), Parallel(tensor=2)),
        ("vllm serve m --tensor-parallel-size=2 -pp 2", "A=b", (0, 1, 2, 3),
         Parallel(tensor=2, pipeline=2)),
        ("vllm serve m", "CUDA_VISIBLE_DEVICES=", (), Parallel()),
        ("vllm serve m -tp two", "A=b", (0,), Parallel()),
    ],
)  # fmt: skip
def test_a_server_that_runs_is_read_by_its_own_words(
    tmp_path: Path, command: str, environment: str, gpus: tuple[int, ...], parallel: Parallel
) -> None:
    proc = running(tmp_path, command, environment)
    assert cards_of_process(7, HOST, proc) == (gpus, parallel)
    assert cards_of_process(8, HOST, proc) == (None, None)


@pytest.mark.parametrize(
    ("subject", "message", "visible", "parallel", "expected"),
    [
        ("tp:1", "", (3, 1), Parallel(tensor=2), "tp:1 gpu:1"),
        ("tp:1", "(Worker_TP1 pid=9) x", (2, 0), Parallel(tensor=2), "tp:1 gpu:0"),
        ("rank:0", "", (3, 1), Parallel(tensor=2), "rank:0 gpu:3"),
        ("gpu:0", "", (3, 1), Parallel(tensor=2), "gpu:3"),
        ("pci:0000:92:00", "", (3, 1), Parallel(tensor=2), "pci:0000:92:00 gpu:2"),
        ("tp:1", "(Worker_PP1_TP1 pid=9) x", (0, 1, 2, 3), Parallel(tensor=2, pipeline=2),
         "tp:1 gpu:3"),
        ("rank:1", "(Worker_DP1_TP1 pid=9) x", (0, 1, 2, 3), Parallel(tensor=2, data=2),
         "rank:1 gpu:3"),
        ("rank:1", "no process named", (0, 1, 2, 3), Parallel(tensor=2, data=2), "rank:1"),
        ("rank:9", "", (3, 1), Parallel(tensor=2), "rank:9"),
        ("tp:1", "", None, None, "tp:1"),
        ("pci:0000:41:00", "", (3, 1), Parallel(tensor=2), "pci:0000:41:00"),
        ("node:2", "", (3, 1), Parallel(tensor=2), "node:2"),
        ("", "", (3, 1), Parallel(tensor=2), ""),
    ],
)  # fmt: skip
def test_a_worker_in_the_log_is_a_card_of_the_host(
    subject: str,
    message: str,
    visible: tuple[int, ...] | None,
    parallel: Parallel | None,
    expected: str,
) -> None:
    finding = Finding(
        at=0.0, kind="oom", severity=Severity.ERROR, source="log", subject=subject, message=message
    )
    status = ServerStatus(visible_gpus=visible, parallel=parallel)
    assert on_card(finding, status, HOST).subject == expected
