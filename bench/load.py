"""Load generators side by side: how fast, at what cost, and how true.

    python -m bench.load [--rounds 5] [--cells paced128,paced512] [--tokenizer DIR]
                         [--vllm COMMAND] [--guidellm PROGRAM] [--aiperf PROGRAM] [--no-keys]

A server in C (built with the C compiler at each start) sits on one core and knows what it sent
when; one tool at a time runs on another, with its defaults: ``gpu-dash run`` whole, and each of
its peers that is named (they need a tokenizer's folder). An error is the tool's percentile less
the server's own of the same requests. Then the dashboard: how long a key takes to change the load,
and the errors with it painting and without. All figures are medians over the rounds; tools take
turns, so that a busy minute of the machine meets all of them. It informs, it does not judge.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import statistics
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from bench.loadgen.dashboard import TtftError, key_to_effect_ms, ttft_error
from bench.loadgen.rig import CELLS, Measured, Tool, build_server, measure
from bench.loadgen.tools import aiperf, gpu_dash, guidellm, vllm_bench
from gpu_dash.analysis.percentile import percentile

COLUMNS = {
    "tok/s": ("tokens_per_s", ".0f"),
    "CPU ms/1k tok": ("cpu_ms_per_1000_tokens", ".2f"),
    "TTFT err p50 ms": ("ttft_error_p50_ms", "+.2f"),
    "TTFT err p99 ms": ("ttft_error_p99_ms", "+.2f"),
    "gap err p99 ms": ("gap_error_p99_ms", "+.2f"),
    "start s": ("start_s", ".2f"),
    "RSS MB": ("peak_rss_mb", ".0f"),
    "failed": ("failed", ".0f"),
}


def main() -> None:
    """Run all, print tables."""
    options = _arguments()
    tools = _tools(options)
    runs: dict[tuple[str, str], list[Measured]] = {}
    waits: list[float] = []
    attached: list[TtftError] = []
    left: list[TtftError] = []
    with tempfile.TemporaryDirectory() as name:
        program = build_server(Path(name))
        for number in range(1, options.rounds + 1):
            for cell in options.cells.split(",") if options.cells else ():
                for tool in tools:
                    print(f"round {number}: {cell}, {tool.name}", file=sys.stderr)
                    try:
                        run = measure(tool, CELLS[cell], program)
                    except (RuntimeError, TimeoutError) as error:
                        print(f"  {error}", file=sys.stderr)
                    else:
                        runs.setdefault((cell, tool.name), []).append(run)
            if options.keys:
                print(f"round {number}: the dashboard", file=sys.stderr)
                waits += key_to_effect_ms(program)
                attached.append(ttft_error(program, attached=True))
                left.append(ttft_error(program, attached=False))
    print(_machine())
    if runs:
        print(f"\n{_table(runs)}")
    if options.keys:
        print(f"\n{_keys(waits, attached, left)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cells", default=",".join(CELLS), help="comma-separated; empty: none")
    parser.add_argument("--tokenizer", default="", help="folder of a tokenizer, for the peers")
    parser.add_argument("--vllm", default="", help="the vllm command")
    parser.add_argument("--guidellm", default="", help="the guidellm program")
    parser.add_argument("--aiperf", default="", help="the aiperf program")
    parser.add_argument("--keys", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    if (options.vllm or options.guidellm or options.aiperf) and not options.tokenizer:
        parser.error("--tokenizer: the peers make their prompts with one; name its folder")
    for cell in filter(None, options.cells.split(",")):
        if cell not in CELLS:
            parser.error(f"--cells: {cell} is none of {', '.join(CELLS)}")
    return options


def _tools(options: argparse.Namespace) -> list[Tool]:
    tools = [gpu_dash()]
    if options.vllm:
        tools.append(vllm_bench(shlex.split(options.vllm), options.tokenizer))
    if options.guidellm:
        tools.append(guidellm(options.guidellm, options.tokenizer))
    if options.aiperf:
        tools.append(aiperf(options.aiperf, options.tokenizer))
    return tools


def _machine() -> str:
    """Date and processor: figures of another machine are other figures."""
    model = platform.processor()
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    load = ", ".join(f"{average:.2f}" for average in os.getloadavg())
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {model}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load average at the end {load}"
    )


def _table(runs: dict[tuple[str, str], list[Measured]]) -> str:
    rows = [["cell", "tool", *COLUMNS, "runs"]]
    order = list(CELLS)
    for (cell, tool), measured in sorted(runs.items(), key=lambda item: order.index(item[0][0])):
        medians = (
            format(statistics.median(getattr(run, name) for run in measured), form)
            for name, form in COLUMNS.values()
        )
        rows.append([cell, tool, *medians, str(len(measured))])
    return _markdown(rows)


def _keys(waits: list[float], attached: list[TtftError], left: list[TtftError]) -> str:
    def medians(errors: list[TtftError]) -> list[str]:
        return [
            f"{statistics.median(error.p50_ms for error in errors):+.2f}",
            f"{statistics.median(error.p99_ms for error in errors):+.2f}",
        ]

    effect = f"{statistics.median(waits):.1f} ms, p99 {percentile(waits, 99):.1f} ms"
    return f"key to changed concurrency: median {effect} ({len(waits)} keys)\n\n" + _markdown(
        [
            ["128 at once, dashboard", "TTFT err p50 ms", "TTFT err p99 ms"],
            ["painting on the other core", *medians(attached)],
            ["left", *medians(left)],
        ]
    )


def _markdown(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(cells: Iterable[str]) -> str:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    head, *rest = rows
    rule = f"|{'|'.join('-' * (width + 1) + ':' for width in widths)}|"
    return "\n".join([line(head), rule, *map(line, rest)])


if __name__ == "__main__":
    main()
