"""What the whole product does, keys and painting included.

The dashboard runs in a pseudo-terminal and paints on the server's core; its agent and the load
run on the other one, as a load generator does in the other measurements.
"""

from __future__ import annotations

import csv
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.commands import gpu_dash, status
from tests.integration.terminal import Terminal

from bench.loadgen.rig import Cell, serving, truth_of
from gpu_dash.analysis.percentile import percentile

PACED = Cell(0, 0, ttft_ms=100, gap_ms=10)
DOUBLINGS = 9
"""From 1 to 512 requests at once."""
PRESET_128 = "8"
LOADED_S = 15.0
LIMIT_S = 30.0


@dataclass(frozen=True)
class TtftError:
    """Reported less true, in milliseconds."""

    p50_ms: float
    p99_ms: float


def key_to_effect_ms(program: Path) -> list[float]:
    """From each key that doubles the load to the moment at which the server has that many
    requests open, in milliseconds."""
    waits = []
    with serving(program, PACED) as url, _dashboard(url) as terminal, _pumped(terminal):
        for doubling in range(DOUBLINGS + 1):
            wanted = 2**doubling
            pressed_at = time.monotonic()
            terminal.press("]" if doubling else "1")
            truth = _wait_for_open(url, wanted)
            if doubling:
                waits.append(1000 * (truth["most_open_at"] - pressed_at))
            time.sleep(0.3)
    return waits


def ttft_error(program: Path, *, attached: bool) -> TtftError:
    """The error at 128 requests at once, with the dashboard painting or left."""
    with serving(program, PACED) as url, _dashboard(url) as terminal:
        terminal.press(PRESET_128)
        _wait_for_open(url, 128)
        if attached:
            with _pumped(terminal):
                time.sleep(LOADED_S)
        else:
            terminal.press("q")
            terminal.wait_for_end()
            time.sleep(LOADED_S)
        (row,) = status()
        gpu_dash("stop")
        truth = truth_of(url)
        with open(Path(row["folder"]) / "requests.csv", encoding="utf-8") as file:
            ttfts = [float(each["ttft_s"]) for each in csv.DictReader(file) if each["ttft_s"]]
    p50, p99 = percentile(ttfts, 50), percentile(ttfts, 99)
    assert p50 is not None
    assert p99 is not None
    return TtftError(1000 * (p50 - truth["ttft_p50_s"]), 1000 * (p99 - truth["ttft_p99_s"]))


@contextmanager
def _dashboard(url: str) -> Iterator[Terminal]:
    """A dashboard on the server, with a state of its own; all that it started ends."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = folder
        try:
            os.sched_setaffinity(0, {cores[-1]})
            terminal = Terminal("gpu-dash", "--base-url", url, "--model", "mock", size=(160, 48))
            os.sched_setaffinity(0, cores)
            with terminal:
                terminal.wait_for_text("READY")
                for thread in os.listdir(f"/proc/{terminal.pid}/task"):
                    os.sched_setaffinity(int(thread), {cores[0]})
                yield terminal
        finally:
            gpu_dash("stop", "--all")
            if before is None:
                del os.environ["XDG_STATE_HOME"]
            else:
                os.environ["XDG_STATE_HOME"] = before


@contextmanager
def _pumped(terminal: Terminal) -> Iterator[None]:
    """Read what the dashboard paints, as a terminal does."""
    is_over = threading.Event()

    def pump() -> None:
        while not is_over.is_set():
            terminal.read()

    thread = threading.Thread(target=pump)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _wait_for_open(url: str, requests: int) -> dict[str, Any]:
    """What the server says once it has had this many requests open."""
    deadline = time.monotonic() + LIMIT_S
    while (truth := truth_of(url))["most_open"] < requests:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{truth['most_open']} of {requests} open after {LIMIT_S:.0f} s")
        time.sleep(0.005)
    return truth
