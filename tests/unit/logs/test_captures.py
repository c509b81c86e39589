"""Whole logs of real servers: what is said of each, and nothing else."""

from __future__ import annotations

import pytest

from gpu_dash.model.log import Severity
from tests.unit.logs.saying import capture, read

CAUSES = [
    ("worker-killed", (360, "worker_died", "critical", "rank:1")),
    ("worker-frozen", (136, "stall", "warning", "")),
    ("kill9_worker", (135, "host_oom", "critical", "rank:0")),
    ("fail_tp3_heads", (53, "tp_size", "critical", "")),
    ("fail_no_such_model_path", (52, "model_config", "critical", "")),
    ("fail_sleep_mode_on_cpu", (52, "python_error", "error", "")),
    ("fail_unrecognized_flag", (5, "bad_flag", "critical", "")),
    ("apikey_devmode", (143, "client_auth", "warning", "")),
    ("pipe_full_start", (138, "client_model", "warning", "")),
]


@pytest.mark.parametrize(("name", "expected"), CAUSES, ids=[name for name, _ in CAUSES])
def test_the_cause_of_a_failure(name: str, expected: tuple[int, str, str, str]) -> None:
    _, findings = read([capture(name)])

    causes = [(f.line, f.kind, f.severity.value, f.subject) for f in findings if f.root]
    assert causes == [expected]


@pytest.mark.parametrize("name", ["ramp", "pipe_sigint", "tty_ctrl_c", "dp2_tree"])
def test_a_server_that_did_well_and_was_stopped(name: str) -> None:
    lines, findings = read([capture(name)])

    assert findings == []
    assert not any(line.kind for line in lines)


def test_an_idle_engine_that_was_killed_left_only_consequences() -> None:
    _, findings = read([capture("kill9_enginecore_idle")])

    assert [(f.kind, f.root) for f in findings] == [("engine_dead", False)]


def test_a_request_that_met_a_server_on_its_way_out_is_only_a_warning() -> None:
    _, findings = read([capture("sigterm_busy_drain30")])

    assert [(f.line, f.kind, f.severity) for f in findings] == [
        (250, "python_error", Severity.WARNING)
    ]


def test_a_crash_of_twenty_thousand_lines_is_a_handful_of_findings() -> None:
    lines, findings = read([capture("worker-killed")])

    assert len(lines) == 19829
    assert [(f.line, f.kind, f.root) for f in findings] == [
        (360, "worker_died", True),
        (383, "engine_dead", False),
    ]
    assert findings[1].count > 60


def test_a_whole_log_does_not_depend_on_how_its_bytes_arrive() -> None:
    data = capture("kill9_worker")

    assert read(data[i : i + 97] for i in range(0, len(data), 97)) == read([data])
