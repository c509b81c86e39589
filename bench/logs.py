"""How fast logs are read: lines a second on one core, and the share that following takes.

    python bench/logs.py [--seconds 10] [--rate 10000] [FILE…]

Classifies whole logs as they were written (the crash of 19,829 lines first), one process, best of
several, beside ``grep -E`` with the phrases of all rules for scale; then follows a file that grows
at a rate, in this process. It informs, it does not gate.
"""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from gpu_dash.logs import classify
from gpu_dash.logs.classify import Classifier
from gpu_dash.logs.follow import Batch, LogFollower
from gpu_dash.logs.lines import LineAssembler
from gpu_dash.logs.rules import RULES

CAPTURES = Path(__file__).parent.parent / "tests" / "data" / "logs" / "captures"
DEFAULT = ("worker-killed", "kill9_worker", "ramp", "dp2_tree")
CHUNK_BYTES = 512 * 1024
REPEATS = 5


def classified(data: bytes) -> tuple[int, float]:
    """Lines, and CPU seconds for them, from bytes to findings."""
    classify._read.cache_clear()
    assembler, classifier = LineAssembler(), Classifier()
    count = 0
    began = time.process_time()
    for start in range(0, len(data), CHUNK_BYTES):
        texts = assembler.feed(data[start : start + CHUNK_BYTES])
        classifier.feed(texts, count + 1, at=0.0)
        count += len(texts)
    classifier.settle(at=0.0)
    return count, time.process_time() - began


def grepped(data: bytes) -> float | None:
    """Seconds that ``grep -E`` takes to find the phrases of all rules."""
    grep = shutil.which("grep")
    if grep is None:
        return None
    phrases = sorted({re.escape(phrase) for rule in RULES for phrase in rule.phrases})
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        log.write(data)
        log.flush()
        began = time.perf_counter()
        subprocess.run([grep, "-cE", "|".join(phrases), log.name], capture_output=True, check=False)
        return time.perf_counter() - began


def show_rate(name: str, data: bytes) -> None:
    """One line of the first table."""
    best = min(classified(data)[1] for _ in range(REPEATS))
    count = classified(data)[0]
    grep = min((seconds for _ in range(3) if (seconds := grepped(data))), default=None)
    beside = f"{count / grep:>14,.0f}" if grep else f"{'-':>14}"
    print(f"{name:<22} {count:>8,} {best / count * 1e6:>9.2f} {count / best:>12,.0f} {beside}")


def show_following(rate: int, seconds: float) -> None:
    """Follow a file that another thread's clock fills at ``rate`` lines a second."""
    received = threading.Semaphore(0)
    count = 0

    def take(batch: Batch) -> None:
        received.release(len(batch.lines))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(rate), str(seconds)],
        )
        cpu_before = time.process_time()
        follower = LogFollower(path, take)
        follower.start()
        writer.wait()
        follower.stop()
        cpu = time.process_time() - cpu_before
        while received.acquire(blocking=False):
            count += 1
    share = cpu / seconds * 100
    print(f"following {rate:,} lines/s for {seconds:g} s: {count:,} lines, {share:.1f} % of a core")


WRITER = """
import sys, time
path, rate, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
begun, count = time.monotonic(), 0
with open(path, "w") as log:
    while (elapsed := time.monotonic() - begun) < seconds:
        while count < elapsed * rate:
            log.write(f'(APIServer pid=1) INFO:     127.0.0.1:{count} - "POST /v1/completions '
                      'HTTP/1.1" 200 OK\\n')
            count += 1
        log.flush()
        time.sleep(0.01)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--rate", type=int, default=10_000, help="lines a second to follow")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to follow")
    options = parser.parse_args()
    logs = {path.name: path.read_bytes() for path in options.files} or {
        name: gzip.decompress((CAPTURES / f"{name}.log.gz").read_bytes()) for name in DEFAULT
    }
    print("log                       lines   us/line      lines/s    grep lines/s")
    for name, data in logs.items():
        show_rate(name, data)
    show_following(options.rate, options.seconds)


if __name__ == "__main__":
    main()
