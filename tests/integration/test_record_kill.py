"""kill -9 of a process that records, at any moment: every file whole, the next one goes on."""

from __future__ import annotations

import csv
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpu_dash.record.columns import FILES
from gpu_dash.record.reader import SessionReader

DEADLINE_S = 20.0
KILLS = 5

pytestmark = pytest.mark.slow


def record_and_kill(folder: Path, after_rows: int, chance: random.Random) -> None:
    """Let a process record until a file has so many more bytes, then kill it at some moment."""
    before = size_of(folder / "requests.csv")
    command = [sys.executable, "-m", "tests.integration.record_at_full_speed", str(folder)]
    with subprocess.Popen(command) as process:
        deadline = time.monotonic() + DEADLINE_S
        while size_of(folder / "requests.csv") < before + after_rows:
            assert process.poll() is None
            assert time.monotonic() < deadline, "it does not record"
            time.sleep(0.001)
        time.sleep(chance.random() / 5)
        process.kill()


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_every_file_is_whole_and_the_next_recorder_goes_on(tmp_path: Path) -> None:
    chance = random.Random()
    seen: dict[str, bytes] = {}
    for _ in range(KILLS):
        record_and_kill(tmp_path, 100_000, chance)
        for name in FILES:
            data = (tmp_path / name).read_bytes()
            assert data.endswith(b"\n"), name
            assert data.startswith(seen.get(name, b"")), name
            rows = list(csv.reader(data.decode().splitlines()))
            assert tuple(rows[0]) == FILES[name]
            assert {len(row) for row in rows} == {len(FILES[name])}, name
            seen[name] = data
    requests = [int(row["request"]) for row in SessionReader(tmp_path).rows("requests.csv")]
    assert len(requests) > KILLS * 100
    assert SessionReader(tmp_path).meta.session == "s"
