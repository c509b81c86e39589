"""``gpu-dash logs`` as a person and as a script call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integration.commands import gpu_dash
from tests.unit.logs.saying import capture

TIMEOUT_LINE = (
    "[rank2]:[E1130 10:21:52.104233871 ProcessGroupNCCL.cpp:688] [Rank 2] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=77120, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600011 milliseconds before timing out.\n"
)
READINGS = (
    "time_utc,gpu,temperature_celsius,throttle_reasons\n"
    "2026-11-30T09:15:01.000Z,0,61,\n"
    "2026-11-30T09:15:01.000Z,2,94,hw_thermal\n"
)
KEYS = {
    *("line", "kind", "severity", "subject", "root", "count"),
    *("message", "first_check", "checks"),
}


def rows(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_json_lines_have_the_keys_that_scripts_rely_on(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(capture("worker-killed"))

    done = gpu_dash("logs", str(log), "--json")

    found = rows(done.stdout)
    assert done.returncode == 0
    assert all(set(row) == KEYS for row in found)
    cause, *followed = found
    assert (cause["line"], cause["kind"], cause["subject"]) == (360, "worker_died", "rank:1")
    assert (cause["root"], cause["count"], cause["severity"]) == (True, 1, "critical")
    assert followed
    assert not any(row["root"] for row in followed)
    assert followed[0]["subject"] is None


def test_standard_input_is_read_for_a_dash() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpu_dash", "logs", "-"],
        input=capture("worker-killed"),
        capture_output=True,
        check=True,
    )

    text = done.stdout.decode()
    assert text.startswith("line 360  CRITICAL  worker_died  rank:1\n")
    assert "19,829 lines, 1 found, 1 followed from these (--all shows them)" in text


def test_readings_change_the_advice_where_the_clocks_agree(tmp_path: Path) -> None:
    log, readings = tmp_path / "a.log", tmp_path / "gpu.csv"
    log.write_text(TIMEOUT_LINE)
    readings.write_text(READINGS)
    arguments = ("logs", str(log), "--json", "--gpu-csv", str(readings), "--log-timezone")

    in_berlin = gpu_dash(*arguments, "+01:00")
    elsewhere = gpu_dash(*arguments, "-08:00", "--log-date", "2026-11-30")

    (told,) = rows(in_berlin.stdout)
    assert told["first_check"].startswith("temperature first: GPU 2: 94 °C, throttled (hw_thermal)")
    assert in_berlin.stderr == ""
    (plain,) = rows(elsewhere.stdout)
    assert not plain["first_check"].startswith("temperature first")
    assert "are not of the log's time" in elsewhere.stderr


def test_what_is_wrong_with_the_arguments_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("hello\n")

    for arguments, says in (
        (("logs", str(tmp_path / "none")), "No such file"),
        (("logs", str(tmp_path)), "Is a directory"),
        (("logs", str(log), "--log-timezone", "Mars/Base"), "is no time zone"),
        (("logs", str(log), "--gpu-csv", str(log)), "no column for the time"),
    ):
        done = gpu_dash(*arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert says in done.stderr
    assert gpu_dash("logs", str(log)).stdout == "1 lines, nothing found\n"
