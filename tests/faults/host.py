"""The host fails: disk, shared memory, clock, driver, the connection of the person."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

from gpu_dash.agent.store import Store
from gpu_dash.model.gpu import GpuSourceState
from gpu_dash.model.server import ServerState
from tests.fakes.nvml.fixture import build_library
from tests.fakes.nvml.scene import NvmlScene
from tests.faults.registry import detail, fault, has_failed
from tests.faults.stage import Outcome, Stage
from tests.integration.commands import write_profile
from tests.integration.terminal import Terminal

DISK = "8m"
SHARED_MEMORY_BYTES = 64 * 1024
STEPPED_CLOCK = Path(__file__).parents[1] / "fakes" / "stepped_clock.c"
STEPS_S = (-3600, 7200)
"""An hour back, then two on."""
ROW_TOLERANCE_S = 0.01

NEEDS_SHARED_MEMORY = """
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=1 << 20)
memory.buf[:] = bytes(1 << 20)
"""


@fault("disk full, and free again")
async def _disk(stage: Stage) -> Outcome:
    """Played once more, on a small disk of its own, in a mount namespace."""
    disk = stage.folder / "disk"
    disk.mkdir()
    inner = [sys.executable, "-m", "tests.faults.small_disk", str(disk)]
    script = f'mount -t tmpfs -o size={DISK} tmpfs "$0" && exec "$@"'
    done = await asyncio.to_thread(
        subprocess.run,
        ["unshare", "-rm", "sh", "-c", script, str(disk), *inner],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Outcome(**json.loads(done.stdout))


@fault("/dev/shm too small")
async def _shared_memory(stage: Stage) -> Outcome:
    program = stage.folder / "needs-shared-memory"
    program.write_text(
        "#!/bin/sh\n"
        f'exec unshare -rm sh -c "mount -t tmpfs -o size={SHARED_MEMORY_BYTES} tmpfs /dev/shm '
        f'&& exec {sys.executable} -X faulthandler {stage.folder}/server.py"\n'
    )
    program.chmod(0o755)
    (stage.folder / "server.py").write_text(NEEDS_SHARED_MEMORY)
    path = write_profile(stage.folder)
    text = path.read_text()
    path.write_text(text.replace('"{python}", "-m", "gpu_dash.demo", "serve"', f'"{program}"'))
    await stage.launch(path, "sim")
    outcome = await stage.timed(lambda: None, has_failed, detail)
    kinds = [finding.kind for finding in stage.store.findings if finding.root]
    outcome.said = f"{', '.join(kinds)}: {outcome.said}"
    return outcome


@fault("wall clock stepped an hour back, then two on")
async def _clock(stage: Stage) -> Outcome:
    library, step = stage.folder / "stepped_clock.so", stage.folder / "step"
    gcc = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(STEPPED_CLOCK), "-ldl"]
    await asyncio.to_thread(subprocess.run, gcc, check=True)
    step.write_text("0")
    with stage.environment(LD_PRELOAD=str(library), STEPPED_CLOCK=str(step)):
        await stage.serve()
        began = time.monotonic()
        for seconds in STEPS_S:
            step.write_text(str(seconds))
            await stage.goes_on()
    outcome = Outcome(time.monotonic() - began, "load and recording go on, in one time")
    stuck = any(finding.kind == "stuck" for finding in stage.store.findings)
    outcome.is_whole = not stuck and _times_agree(Path(stage.store.session_folder) / "gpu.csv")
    return outcome


def _times_agree(path: Path) -> bool:
    """Whether both columns of time run on, side by side."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            (float(row["time_s"]), datetime.fromisoformat(row["time_utc"]).timestamp())
            for row in csv.DictReader(file)
        ]
    start_s, start_utc = rows[0]
    return rows == sorted(rows) and all(
        abs((utc - start_utc) - (since_s - start_s)) < ROW_TOLERANCE_S for since_s, utc in rows
    )


@fault("NVIDIA driver gone: every call about a card fails")
async def _driver(stage: Stage) -> Outcome:
    build_library(stage.folder)
    scene = NvmlScene(stage.folder, stage.folder / "cards.scenario")
    scene.write("gpus 2")

    def lost(store: Store) -> str:
        tracks = [track.lost for track in store.gpu_tracks() if track.lost]
        if len(tracks) == len(store.gpu_tracks()):
            return tracks[0]
        return store.gpu_detail if store.gpu_state is not GpuSourceState.LIVE else ""

    with stage.environment(**scene.variables()):
        await stage.serve(source="nvml")
        outcome = await stage.timed(lambda: scene.write("gpus 2\n*.err.* GPU_IS_LOST"), lost, lost)
        await stage.goes_on()
    outcome.is_whole = stage.files_are_whole()
    return outcome


@fault("SSH connection lost: the dashboard's terminal is gone")
async def _connection(stage: Stage) -> Outcome:
    await stage.serve()

    def watch_and_lose() -> float:
        with Terminal("gpu-dash", "attach", size=(100, 30)) as terminal:
            terminal.wait_for_text("quick")
            began = time.monotonic()
            terminal.hang_up()
            terminal.wait_for_end()
            return time.monotonic() - began

    seconds = await asyncio.to_thread(watch_and_lose)
    await stage.goes_on()
    ready = stage.store.server.state is ServerState.READY
    return Outcome(
        seconds,
        "the dashboard ends; server, load and recording go on",
        is_whole=ready and stage.files_are_whole(),
    )


async def fill_the_disk(stage: Stage) -> Outcome:
    """The state folder's disk has no room any more, then some again."""
    await stage.serve()
    filler = stage.folder / "filler"

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                return

    def said(store: Store) -> str:
        return next((n.text for n in store.notices if "rows are lost" in n.text), "")

    outcome = await stage.timed(fill, said, said)
    await stage.goes_on()
    os.unlink(filler)
    await stage.until(
        lambda store: any("the recording goes on" in notice.text for notice in store.notices)
    )
    newest = next(n.text for n in reversed(stage.store.notices) if "goes on" in n.text)
    outcome.said = f"{outcome.said}; then: {newest}"
    outcome.is_whole = stage.files_are_whole() and stage.store.server.state is ServerState.READY
    return outcome
