"""A process that records as fast as it can until somebody kills it: ``FOLDER [LIMIT_BYTES]``.

With a limit no file may grow beyond it, as on a full disk; a line on stdin lifts it. What the
recorder has to say goes to stdout.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from pathlib import Path

from gpu_dash.model import events as ev
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuSample, ThrottleKind
from gpu_dash.model.load import RequestRecord
from gpu_dash.model.log import Severity
from gpu_dash.record.meta import SessionMeta, read_meta
from gpu_dash.record.recorder import Recorder


def main() -> None:
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        limit = (int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_FSIZE)[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        threading.Thread(target=lift_limit, daemon=True).start()
    known = read_meta(folder)
    meta = known or SessionMeta(session="s", anchor=ClockAnchor(monotonic=0.0, utc=1.8e9))
    recorder = Recorder(folder, meta, say, settle_s=0.0, queue_events=5_000)
    at = float(len((folder / "events.csv").read_bytes().splitlines()))
    recorder.record(ev.ThrottleBegan(at=at, gpu=0, kind=ThrottleKind.THERMAL, reasons=("x",)))
    while True:
        at += 1.0
        for event in events_at(at):
            recorder.record(event)
        time.sleep(0.002)


def events_at(at: float) -> list[ev.Event]:
    request = RequestRecord(
        request=int(at), step=1, concurrency=1, scheduled=at, sent=at, detail="words " * 30
    )
    return [
        ev.GpuSamples(
            at=at, samples=tuple(GpuSample(gpu=gpu, power_watts=300.125) for gpu in range(8))
        ),
        ev.RequestsEnded(at=at, requests=(request,) * 20),
        ev.Notice(at=at, severity=Severity.INFO, text="word " * int(at % 50)),
    ]


def say(text: str) -> None:
    print(text, flush=True)


def lift_limit() -> None:
    sys.stdin.readline()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


if __name__ == "__main__":
    main()
