"""A disk that fills up while a session is recorded, and gets room again."""

from __future__ import annotations

import contextlib
import csv
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_dash.record.columns import FILES

RECORD = [sys.executable, "-m", "tests.integration.record_at_full_speed"]
DISK_BYTES = 512 * 1024
DEADLINE_S = 30.0

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A child whose session is gone at the end, and at the deadline at the latest."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(DEADLINE_S, kill)
    timer.start()
    try:
        with process:
            yield process
            kill()
    finally:
        timer.cancel()
        kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def assert_whole(folder: Path) -> None:
    for path in folder.glob("*.csv"):
        data = path.read_bytes()
        assert data.endswith(b"\n"), path.name
        rows = list(csv.reader(data.decode().splitlines()))
        assert {len(row) for row in rows} == {len(FILES[path.name])}, path.name


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    with running([*RECORD, str(tmp_path), str(DISK_BYTES)]) as process:
        assert f"{tmp_path}: File too large; rows are lost" in said(process)
        assert_whole(tmp_path)
        size = (tmp_path / "requests.csv").stat().st_size
        assert DISK_BYTES - 4096 < size <= DISK_BYTES
        assert process.stdin is not None
        process.stdin.write("lift the limit\n")
        process.stdin.flush()
        words = said(process)
        assert f"{tmp_path}: the recording goes on; lost: " in words
        assert "rows of requests.csv" in words
    assert_whole(tmp_path)
    assert (tmp_path / "requests.csv").stat().st_size > size


_ON_A_SMALL_DISK = """
set -e
mount -t tmpfs -o size=5m,mode=700 tmpfs "$1"
mkdir "$1/session"
dd if=/dev/zero of="$1/ballast" bs=1M count=4 status=none
"$2" -m tests.integration.record_at_full_speed "$1/session" &
child=$!
trap 'kill -9 $child' EXIT
read -r free
rm "$1/ballast"
read -r look
kill -9 $child
wait $child || true
trap - EXIT
cp -r "$1/session" "$3"
df --output=avail "$1" | tail -1
"""


def can_mount() -> bool:
    """Whether this user may mount a file system of his own."""
    if shutil.which("unshare") is None:
        return False
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def test_a_disk_without_room(tmp_path: Path) -> None:
    if not can_mount() and not os.environ.get("GPU_DASH_NO_SKIP"):
        pytest.skip("unshare -rm cannot mount a tmpfs here")
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    command = ["unshare", "-rm", "bash", "-c", _ON_A_SMALL_DISK, "bash"]
    with running([*command, str(disk), sys.executable, str(copy)]) as process:
        assert process.stdin is not None
        assert f"{disk}/session: No space left on device; rows are lost" in said(process)
        process.stdin.write("free\n")
        process.stdin.flush()
        assert f"{disk}/session: the recording goes on; lost: " in said(process)
        process.stdin.write("look\n")
        process.stdin.flush()
        while said(process).strip().startswith(str(disk)):
            pass
        assert process.wait() == 0
    assert_whole(copy)
    assert (copy / "session.toml").stat().st_size > 50
    assert sum(path.stat().st_size for path in copy.iterdir()) > 1_200_000
