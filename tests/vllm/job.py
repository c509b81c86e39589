"""``gpu-dash run`` as a process of its own, and what it printed and left."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.processes import HOME_VARIABLE, processes_of, wait_until_gone

LAUNCH_TIMEOUT_S = 300
"""A cold vLLM on two busy cores takes one to two minutes to its first step."""

END_TIMEOUT_S = 60
"""The longest that it may take from the end of the work to the end of every process."""


@dataclass(frozen=True)
class Job:
    """One run, from its start on."""

    process: subprocess.Popen[bytes]
    home: Path
    folder: Path
    """The session folder, ``--out``."""

    def objects(self) -> list[dict[str, Any]]:
        """The whole lines that it has printed so far."""
        whole_lines = self._stdout.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in whole_lines]

    def stderr(self) -> str:
        """What it has said on stderr so far."""
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    def rows(self, name: str) -> list[dict[str, str]]:
        """The rows of one of the session's CSV files."""
        with (self.folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def wait_for_objects(self, count: int) -> None:
        """Wait until it has printed so many objects.

        Raises:
            AssertionError: it ended before, or took too long.
        """
        deadline = time.monotonic() + LAUNCH_TIMEOUT_S
        while len(self.objects()) < count:
            assert self.process.poll() is None, self.stderr()
            assert time.monotonic() < deadline, self.stderr()
            time.sleep(0.1)

    def server_processes(self) -> list[psutil.Process]:
        """The living processes that this run has started: keeper, workers, vLLM's own."""
        return [process for process in processes_of(self.home) if process.pid != self.process.pid]

    def exit_code(self, timeout_s: float) -> int:
        """Wait for its end."""
        return self.process.wait(timeout_s)

    def processes_left(self) -> list[psutil.Process]:
        """What of it still runs a while after its end."""
        return wait_until_gone(self.server_processes(), timeout_s=5)

    @property
    def _stdout(self) -> Path:
        return self.home / "stdout"

    @property
    def _stderr(self) -> Path:
        return self.home / "stderr"


def start_job(profile: Path, home: Path, *options: str) -> Job:
    """Start ``gpu-dash run PROFILE --json`` with a home of its own.

    Args:
        profile: the launch profile.
        home: an empty folder; everything that the run leaves is below it.
        options: further options of ``run``.
    """
    folder = home / "session"
    with (home / "stdout").open("wb") as stdout, (home / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gpu_dash", "run", str(profile)),
                *("--json", "--out", str(folder), *options),
            ],
            env={
                **os.environ,
                "HOME": str(home),
                "XDG_STATE_HOME": str(home / "state"),
                "XDG_CONFIG_HOME": str(home / "config"),
                HOME_VARIABLE: str(home),
            },
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    return Job(process=process, home=home, folder=folder)
