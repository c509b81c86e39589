"""CPU that the sampler takes at 10 Hz, beside nvitop as a whole at 1 Hz, on the same cards.

    python bench/gpu_sampler.py [--cards 8] [--seconds 10] [--rounds 5] [--nvitop PATH]

Both run at the same time on cards of the scripted NVIDIA driver, nvitop in a terminal of its own.
Medians over the rounds, start-up not counted. The scripted driver answers in microseconds: what a
real one takes comes on top of both. It informs, it does not gate.
"""

from __future__ import annotations

import argparse
import os
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.fakes.nvml.fixture import build_library
from tests.fakes.nvml.scene import NvmlScene

from gpu_dash.gpu.child import sampler_command

WARM_S = 3.0
SCENE = """
*.temp 55..70@20
*.power_mw 480000..690000@7
*.sm_mhz 1700..1980@5
*.util 60..100@9
*.energy_mj 1000+600000
*.mem_used 130000000000
*.power_peak_mw 700000
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU of the sampler beside nvitop's.")
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nvitop", default=shutil.which("nvitop"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        build_library(Path(folder))
        scene = NvmlScene(Path(folder), Path(folder) / "cards.scenario")
        scene.write(f"gpus {arguments.cards}\n{SCENE}")
        rounds = [
            measure(scene, arguments.nvitop, arguments.seconds) for _ in range(arguments.rounds)
        ]
    names = ("sampler, 10 Hz", "nvitop, 1 Hz")
    for name, of_round in zip(names, zip(*rounds, strict=True), strict=True):
        known = [cost for cost in of_round if cost is not None]
        if known:
            print(f"{name:16} {statistics.median(known):.4f} CPU s/s  (of {len(known)} rounds)")


def measure(
    scene: NvmlScene, nvitop: str | None, seconds: float
) -> tuple[float | None, float | None]:
    """CPU seconds per second of the sampler and of nvitop (``None`` without one)."""
    sampler = subprocess.Popen(
        sampler_command("nvml", None),
        env=scene.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    rival = None if nvitop is None else _in_terminal([nvitop, "--interval", "1"], scene)
    try:
        time.sleep(WARM_S)
        watched = [sampler, rival]
        before = [_cpu_s(process) for process in watched]
        began = time.monotonic()
        time.sleep(seconds)
        elapsed = time.monotonic() - began
        costs = [
            None if then is None or (now := _cpu_s(process)) is None else (now - then) / elapsed
            for process, then in zip(watched, before, strict=True)
        ]
        return costs[0], costs[1]
    finally:
        for process in (sampler, rival):
            if process is not None:
                process.terminate()
                process.wait()


def _in_terminal(command: list[str], scene: NvmlScene) -> subprocess.Popen[bytes]:
    """Run a command in a terminal whose output goes nowhere."""
    master, slave = pty.openpty()
    os.set_blocking(master, True)
    environment = {**scene.environment(), "TERM": "xterm-256color", "LINES": "50", "COLUMNS": "160"}
    process = subprocess.Popen(
        command, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    threading.Thread(target=_drain, args=(master,), daemon=True).start()
    return process


def _drain(master: int) -> None:
    try:
        while os.read(master, 65536):
            pass
    except OSError:
        os.close(master)


def _cpu_s(process: subprocess.Popen[bytes] | None) -> float | None:
    """CPU seconds of a process that runs, all threads, to the nanosecond."""
    if process is None or process.poll() is not None:
        return None
    tasks = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


if __name__ == "__main__":
    main()
