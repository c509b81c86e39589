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
