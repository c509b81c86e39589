"""A load generator runs against the server that knows the truth, and is watched.

The server (``mock_llm.c``) sits on the first core that this process may use, the tool on the
second. An error is the tool's percentile less the server's own of the same requests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

OUTPUT_TOKENS = 128
PROMPT_TOKENS = 32
RUN_TIMEOUT_S = 240.0
SAMPLE_INTERVAL_S = 0.05


@dataclass(frozen=True)
class Cell:
    """One kind of load."""

    concurrency: int
    requests: int
    ttft_ms: int = 0
    gap_ms: int = 0
    burst: int = 1


CELLS = {
    "max32": Cell(32, 2560, burst=8),
    "max256": Cell(256, 5120, burst=8),
    "paced32": Cell(32, 96, 100, 10),
    "paced128": Cell(128, 384, 100, 10),
    "paced512": Cell(512, 1536, 100, 10),
}


@dataclass(frozen=True)
class Reported:
    """What a tool says about a run, in seconds."""

    requests_ok: int
    ttft_p50_s: float
    ttft_p99_s: float
    itl_p99_s: float


@dataclass(frozen=True)
class Tool:
    """A load generator."""

    name: str
    command: Callable[[Cell, str, Path], list[str]]
    """The command line for a cell, a base URL and a new folder."""
    report: Callable[[Path, str], Reported]
    """What it said: from its folder and its stdout."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it needs."""


@dataclass(frozen=True)
class Measured:
    """One run of one tool in one cell."""

    tokens_per_s: float
    cpu_ms_per_1000_tokens: float
    ttft_error_p50_ms: float
    ttft_error_p99_ms: float
    gap_error_p99_ms: float
    start_s: float
    """From the command to the first request."""
    peak_rss_mb: float
    failed: int


def build_server(folder: Path) -> Path:
    """The server's program, built from its source."""
    program = folder / "mock_llm"
    source = Path(__file__).with_name("mock_llm.c")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, source], check=True)
    return program


@contextmanager
def serving(program: Path, cell: Cell) -> Iterator[str]:
    """The base URL of a server for this cell."""
    options = [str(number) for number in (cell.ttft_ms * 1000, cell.gap_ms * 1000, cell.burst)]
    process = subprocess.Popen(
        [*on_core(0), str(program), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


def truth_of(url: str) -> dict[str, Any]:
    """What the server did, by its own clock."""
    with urllib.request.urlopen(f"{url}/truth", timeout=10) as page:
        truth: dict[str, Any] = json.load(page)
    return truth


def measure(tool: Tool, cell: Cell, program: Path) -> Measured:
    """Run a tool once.

    Raises:
        subprocess.TimeoutExpired: it did not end.
    """
    with (
        tempfile.TemporaryDirectory() as name,
        serving(program, cell) as url,
        open(Path(name) / "stdout", "w+") as stdout,
        open(Path(name) / "stderr", "w+") as stderr,
    ):
        folder = Path(name)
        began_at = time.monotonic()
        process = psutil.Popen(
            [*on_core(1), *tool.command(cell, url, folder)],
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env={**os.environ, "XDG_STATE_HOME": name, **tool.environment},
        )
        used: list[tuple[float, float]] = []
        peak_rss_bytes = 0
        seen: dict[int, float] = {}
        while process.poll() is None:
            rss_bytes = _sample(process, seen)
            peak_rss_bytes = max(peak_rss_bytes, rss_bytes)
            used.append((time.monotonic(), sum(seen.values())))
            if time.monotonic() > began_at + RUN_TIMEOUT_S:
                process.kill()
                raise subprocess.TimeoutExpired(tool.name, RUN_TIMEOUT_S)
            time.sleep(SAMPLE_INTERVAL_S)
        truth = truth_of(url)
        stdout.seek(0)
        try:
            said = tool.report(folder, stdout.read())
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            stderr.seek(0)
            raise RuntimeError(
                f"{tool.name}: no result ({error}); {stderr.read()[-600:]}"
            ) from error
    cpu_s = _at(used, truth["last_token_at"]) - _at(used, truth["first_request_at"])
    return Measured(
        tokens_per_s=truth["tokens_per_s"],
        cpu_ms_per_1000_tokens=1e6 * cpu_s / truth["tokens"],
        ttft_error_p50_ms=1000 * (said.ttft_p50_s - truth["ttft_p50_s"]),
        ttft_error_p99_ms=1000 * (said.ttft_p99_s - truth["ttft_p99_s"]),
        gap_error_p99_ms=1000 * (said.itl_p99_s - truth["itl_p99_s"]),
        start_s=truth["first_request_at"] - began_at,
        peak_rss_mb=peak_rss_bytes / 1e6,
        failed=cell.requests - said.requests_ok,
    )


def on_core(core: int) -> list[str]:
    """What to put before a command so that it runs on one core: 0 the server's, 1 the tool's."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 or shutil.which("taskset") is None:
        return []
    return ["taskset", "-c", str(cores[core])]


def _sample(process: psutil.Process, seen: dict[int, float]) -> int:
    """Note the processor time of each process of a tree; their resident bytes together."""
    rss_bytes = 0
    try:
        tree = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for member in tree:
        try:
            times = member.cpu_times()
            seen[member.pid] = times.user + times.system
            rss_bytes += member.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return rss_bytes


def _at(samples: list[tuple[float, float]], moment: float) -> float:
    """The value at a moment, on the line between two samples."""
    before = samples[0]
    for sample in samples:
        if sample[0] >= moment:
            share = (moment - before[0]) / max(1e-9, sample[0] - before[0])
            return before[1] + share * (sample[1] - before[1])
        before = sample
    return before[1]
