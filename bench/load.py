"""Load generators side by side: how fast, at what cost, and how true.

    python bench/load.py [--rounds 5] [--cells paced128,paced512] [--vllm COMMAND] [--tokenizer DIR]

A server in C (``mock_llm.c``, built with the C compiler at each start) sits on one core and knows
what it sent when; one tool at a time runs on another, with its defaults: ``gpu-dash run`` whole,
and ``vllm bench serve`` where it is installed (it needs a tokenizer's folder). An error is the
tool's percentile less the server's own of the same requests. All figures are medians over the
rounds; tools take turns, so that a busy minute of the machine meets all of them. It informs, it
does not judge.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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


def gpu_dash() -> Tool:
    """This project, from the environment that runs the benchmark."""

    def command(cell: Cell, url: str, folder: Path) -> list[str]:
        program = str(Path(sys.executable).with_name("gpu-dash"))
        return [
            program, "run", "--base-url", url, "--model", "mock", "--chat", "--json",
            "--ramp", str(cell.concurrency), "--requests", str(cell.requests), "--warmup", "0s",
            "--prompt-tokens", str(PROMPT_TOKENS), "--output-tokens", str(OUTPUT_TOKENS),
            "--gpu", "none", "--out", str(folder / "session"),
        ]  # fmt: skip

    def report(_folder: Path, stdout: str) -> Reported:
        step = json.loads(stdout.splitlines()[0])
        return Reported(
            step["requests_ok"], step["ttft_p50_s"], step["ttft_p99_s"], step["itl_p99_s"]
        )

    return Tool("gpu-dash run", command, report)


def vllm_bench(vllm: list[str], tokenizer: str) -> Tool:
    """vLLM's own.

    Args:
        vllm: the ``vllm`` command.
        tokenizer: folder of any tokenizer; it makes the prompts.
    """

    def command(cell: Cell, url: str, folder: Path) -> list[str]:
        return [
            *vllm, "bench", "serve", "--backend", "openai-chat", "--base-url", url,
            "--endpoint", "/v1/chat/completions", "--model", "mock", "--tokenizer", tokenizer,
            "--dataset-name", "random", "--random-input-len", str(PROMPT_TOKENS),
            "--random-output-len", str(OUTPUT_TOKENS), "--num-prompts", str(cell.requests),
            "--max-concurrency", str(cell.concurrency), "--num-warmups", "0", "--disable-tqdm",
            "--ready-check-timeout-sec", "0", "--save-result", "--result-dir", str(folder),
            "--result-filename", "result.json", "--percentile-metrics", "ttft,itl",
            "--metric-percentiles", "50,99",
        ]  # fmt: skip

    def report(folder: Path, _stdout: str) -> Reported:
        result = json.loads((folder / "result.json").read_text())
        return Reported(
            result["completed"],
            result["p50_ttft_ms"] / 1000,
            result["p99_ttft_ms"] / 1000,
            result["p99_itl_ms"] / 1000,
        )

    return Tool("vllm bench serve", command, report)


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
        [*_on_core(0), str(program), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


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
            [*_on_core(1), *tool.command(cell, url, folder)],
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env={**os.environ, "XDG_STATE_HOME": name, "HF_HUB_OFFLINE": "1"},
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
        with urllib.request.urlopen(f"{url}/truth", timeout=10) as page:
            truth = json.load(page)
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


def _on_core(core: int) -> list[str]:
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


def _print_table(runs: dict[tuple[str, str], list[Measured]]) -> None:
    print(
        f"{'cell':9} {'tool':17} {'tok/s':>8} {'CPU ms/1k':>10} {'TTFT err p50':>13} {'p99':>8}"
        f" {'gap err p99':>12} {'start s':>8} {'RSS MB':>7} {'failed':>7}  runs"
    )
    for (cell, tool), measured in runs.items():

        def median(name: str, measured: list[Measured] = measured) -> float:
            return float(statistics.median(getattr(run, name) for run in measured))

        print(
            f"{cell:9} {tool:17} {median('tokens_per_s'):8.0f}"
            f" {median('cpu_ms_per_1000_tokens'):10.2f} {median('ttft_error_p50_ms'):+13.2f}"
            f" {median('ttft_error_p99_ms'):+8.2f} {median('gap_error_p99_ms'):+12.2f}"
            f" {median('start_s'):8.2f} {median('peak_rss_mb'):7.0f} {median('failed'):7.0f}"
            f"  {len(measured)}"
        )


def main() -> None:
    """Run all, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--vllm", default=shutil.which("vllm") or "", help="the vllm command")
    parser.add_argument("--tokenizer", default="", help="folder of a tokenizer, for vllm")
    options = parser.parse_args()
    tools = [gpu_dash()]
    if options.vllm and options.tokenizer:
        tools.append(vllm_bench(shlex.split(options.vllm), options.tokenizer))
    else:
        print("without vllm bench serve: give --vllm and --tokenizer", file=sys.stderr)
    runs: dict[tuple[str, str], list[Measured]] = {}
    with tempfile.TemporaryDirectory() as name:
        program = build_server(Path(name))
        for number in range(options.rounds):
            for cell in options.cells.split(","):
                for tool in tools:
                    print(f"round {number + 1}: {cell}, {tool.name}", file=sys.stderr)
                    run = measure(tool, CELLS[cell], program)
                    runs.setdefault((cell, tool.name), []).append(run)
    load = ", ".join(f"{average:.2f}" for average in os.getloadavg())
    print(f"{os.cpu_count()} cores, load average at the end {load}\n")
    _print_table(dict(sorted(runs.items(), key=lambda item: list(CELLS).index(item[0][0]))))


if __name__ == "__main__":
    main()
