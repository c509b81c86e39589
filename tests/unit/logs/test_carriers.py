"""What a container, a journal or a cluster writes in front of a line changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.unit.logs.saying import cases, found

CARRIERS: dict[str, Callable[[str], str]] = {
    "docker logs -t": lambda line: f"2026-11-30T10:13:02.123456789Z {line}",
    "docker json-file": lambda line: json.dumps(
        {"log": f"{line}\n", "stream": "stdout", "time": "2026-11-30T10:13:02.1Z"}
    ),
    "docker compose": lambda line: f"vllm-1  | {line}",
    "docker compose in colour": lambda line: f"\x1b[36mvllm-1  | \x1b[0m{line}",
    "kubernetes": lambda line: f"2026-11-30T10:13:02.123456789+02:00 stderr F {line}",
    "kubectl logs --prefix": lambda line: f"[pod/vllm-0/server] {line}",
    "journalctl": lambda line: f"Nov 30 10:13:02 host-a vllm[77]: {line}",
    "journalctl -o short-iso": lambda line: f"2026-11-30T10:13:02+0000 host-a vllm[77]: {line}",
    "journalctl -o json": lambda line: json.dumps({"MESSAGE": line, "_PID": "77"}),
    "ts": lambda line: f"Nov 30 10:13:02 {line}",
    "a time in brackets": lambda line: f"[2026-11-30 10:13:02] {line}",
    "a time with milliseconds": lambda line: f"2026-11-30 10:13:02,123 {line}",
    "ray": lambda line: f"\x1b[36m(RayWorkerWrapper pid=880, ip=192.0.2.3)\x1b[0m {line}",
    "mpirun --tag-output": lambda line: f"[1,3]<stderr>:{line}",
    "srun --label": lambda line: f"0: {line}",
    "a terminal": lambda line: f"{line}\r",
}
CASES = [
    case
    for case in cases()
    if not any(line.startswith("client: ") or "\r" in line for line in case["lines"])
]
"""Those of a server; a progress bar inside JSON has no states any more."""


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS)
def test_a_carrier_changes_nothing(carrier: Callable[[str], str]) -> None:
    for case in CASES:
        plain = causes(case["lines"])

        carried = causes([carrier(line) for line in case["lines"]])

        assert carried == plain, case["id"]


WORKER = "(Worker_TP1 pid=77) ERROR 11-30 10:13:02 [multiproc_executor.py:949] "
ENGINE = "(EngineCore pid=8) ERROR 11-30 10:13:02 [core.py:1110] "
PREFIXES = {
    "0.6": (
        "(VllmWorkerProcess pid=77) ERROR 11-30 10:13:02 multiproc_worker_utils.py:226] ",
        "ERROR 11-30 10:13:02 engine.py:366] ",
    ),
    "0.8": (
        "(VllmWorker rank=1 pid=77) ERROR 11-30 10:13:02 [multiproc_executor.py:379] ",
        "ERROR 11-30 10:13:02 [core.py:291] ",
    ),
    "0.10": (
        "(VllmWorker TP1 pid=77) ERROR 11-30 10:13:02 [multiproc_executor.py:596] ",
        "(EngineCore_0 pid=8) ERROR 11-30 10:13:02 [core.py:700] ",
    ),
    "0.11, DP": (
        "(Worker_DP1_PP0_TP1_EP1 pid=77) ERROR 11-30 10:13:02 [multiproc_executor.py:597] ",
        "(EngineCore_DP1 pid=8) ERROR 11-30 10:13:02 [core.py:708] ",
    ),
    "Ray": (
        "(RayWorkerWrapper pid=880, ip=192.0.2.3) ERROR 11-30 10:13:02 [worker_base.py:620] ",
        "(EngineCore_DP0 pid=8) ERROR 11-30 10:13:02 [core.py:700] ",
    ),
    "wrapped streams": ("(Worker_TP1 pid=77) ", "(EngineCore_DP0 pid=8) "),
    "torchrun": ("[rank1]: ", "[rank0]: "),
    "none": ("", ""),
}
"""What stands in front of a line of a worker and of the engine."""


@pytest.mark.parametrize(("worker", "engine"), PREFIXES.values(), ids=PREFIXES)
def test_the_prefix_of_another_version_changes_no_kind_and_no_cause(
    worker: str, engine: str
) -> None:
    count = 0
    for case in cases("wordings"):
        if not any(line.startswith((WORKER, ENGINE)) for line in case["lines"]):
            continue
        lines = [line.replace(WORKER, worker).replace(ENGINE, engine) for line in case["lines"]]

        found_causes = [(kind, line) for kind, _, _, line in causes(lines)]

        expect = case["expect"]
        assert found_causes == [(expect["kind"], expect["root_line"] + 1)], case["id"]
        count += 1
    assert count > 30


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30 10:13:02,123 - vllm.worker - INFO - retry after CUDA out of memory",
        "2026-11-30 10:13:02 [INFO] vllm.worker: retry after CUDA out of memory",
        "2026-11-30T10:13:02.5 | INFO | retry after CUDA out of memory",
        '{"time": "10:13", "level": "info", "msg": "retry after CUDA out of memory"}',
    ],
)
def test_a_note_in_the_format_of_somebody_else_is_a_note(line: str) -> None:
    assert found(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30 10:13:02,123 - vllm.worker - ERROR - CUDA out of memory. Tried 2 GiB",
        "2026-11-30 10:13:02 [ERROR] vllm.worker: CUDA out of memory. Tried 2 GiB",
        '{"time": "10:13", "level": "error", "msg": "CUDA out of memory. Tried 2 GiB"}',
    ],
)
def test_an_error_in_the_format_of_somebody_else_is_an_error(line: str) -> None:
    assert [finding.kind for finding in found(line)] == ["oom_runtime"]


def causes(lines: list[str]) -> list[tuple[str, str, str, int | None]]:
    return [
        (finding.kind, str(finding.severity), finding.subject, finding.line)
        for finding in found(*lines)
        if finding.root
    ]
