"""Real processes under a real keeper: start, end, stop, adoption."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from gpu_dash.model.errors import ServerError
from gpu_dash.server.handles import ContainerHandle, ContainerRecord, ProcessHandle
from gpu_dash.server.processes import is_alive, session_members

FAMILY = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
{before}
print("up", flush=True)
{after}
"""


async def launch(folder: Path, before: str = "", after: str = "time.sleep(600)") -> ProcessHandle:
    """Start a process with one child of its own, and wait until it says that it is up."""
    script = FAMILY.format(before=before, after=after)
    handle = await ProcessHandle.launch(
        [sys.executable, "-c", script],
        os.environ,
        folder=str(folder),
        log_path=folder / "server.log",
        status_path=folder / "keeper.json",
    )
    async with asyncio.timeout(10):
        while "up" not in log_of(folder):
            await asyncio.sleep(0.02)
    return handle


def log_of(folder: Path) -> str:
    path = folder / "server.log"
    return path.read_text(encoding="utf-8") if path.exists() else ""


async def test_a_server_has_a_session_of_its_own_and_writes_to_its_log(tmp_path: Path) -> None:
    handle = await launch(tmp_path)
    try:
        assert os.getsid(handle.pid) == handle.pid
        assert os.getsid(handle.record.keeper.pid) == handle.record.keeper.pid
        assert log_of(tmp_path) == "up\n"
        assert len(session_members(handle.record.server)) == 2
    finally:
        await handle.stop(starting=False, grace_s=5)


async def test_a_stop_leaves_no_process_of_the_session(tmp_path: Path) -> None:
    handle = await launch(tmp_path)
    stopped = await handle.stop(starting=False, grace_s=5)
    assert stopped.exit_code == -signal.SIGTERM
    assert stopped.leftovers == ()
    assert session_members(handle.record.server) == []


async def test_a_server_that_ignores_the_signal_is_killed_after_its_grace(tmp_path: Path) -> None:
    handle = await launch(tmp_path, before="signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    stopped = await handle.stop(starting=False, grace_s=0.3)
    assert stopped.exit_code == -signal.SIGKILL
    assert session_members(handle.record.server) == []


async def test_while_it_starts_it_is_interrupted_because_sigterm_is_swallowed(
    tmp_path: Path,
) -> None:
    handle = await launch(tmp_path, before="signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    stopped = await handle.stop(starting=True, grace_s=10)
    assert stopped.exit_code in (1, -signal.SIGINT)


async def test_the_exit_code_of_a_crash_is_known_and_its_orphans_are_ended(tmp_path: Path) -> None:
    handle = await launch(tmp_path, after="sys.exit(3)")
    assert await handle.wait() == 3
    assert await handle.clear_leftovers() == ()
    assert session_members(handle.record.server) == []


async def test_the_next_agent_adopts_it_and_learns_its_exit_code(tmp_path: Path) -> None:
    launched = await launch(tmp_path)
    adopted = ProcessHandle.adopt(launched.record)
    assert adopted.is_running
    waiting = asyncio.create_task(adopted.wait())
    await asyncio.sleep(0)
    os.kill(adopted.pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        assert await waiting == -signal.SIGKILL
    await adopted.clear_leftovers()
    assert await ProcessHandle.adopt(launched.record).wait() == -signal.SIGKILL


async def test_the_keeper_ends_with_the_last_process_below_it(tmp_path: Path) -> None:
    handle = await launch(tmp_path)
    await handle.stop(starting=False, grace_s=5)
    async with asyncio.timeout(10):
        while is_alive(handle.record.keeper):
            await asyncio.sleep(0.02)
            await handle.wait()


async def test_signals_to_our_session_do_not_reach_the_keeper(tmp_path: Path) -> None:
    handle = await launch(tmp_path)
    try:
        for number in (signal.SIGHUP, signal.SIGINT):
            os.kill(handle.record.keeper.pid, number)
        await asyncio.sleep(0.1)
        assert is_alive(handle.record.keeper)
        assert handle.is_running
    finally:
        await handle.stop(starting=False, grace_s=5)


async def test_a_program_that_cannot_start_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"none-such: No such file.*server\.command"):
        await ProcessHandle.launch(
            [str(tmp_path / "none-such")],
            os.environ,
            folder=str(tmp_path),
            log_path=tmp_path / "server.log",
            status_path=tmp_path / "keeper.json",
        )


DOCKER = """#!{python}
import os, pathlib, sys, time
here = pathlib.Path(__file__).parent
with open(here / "calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
command = sys.argv[1]
ended = here / "ended"
if command == "run":
    print("0123456789ab")
elif command == "logs":
    assert "--timestamps" in sys.argv
    print("2026-11-30T10:00:00.000000001Z a line of the container", flush=True)
    while not ended.exists():
        time.sleep(0.02)
elif command == "wait":
    while not ended.exists():
        time.sleep(0.02)
    print(137)
elif command == "stop":
    ended.touch()
elif command == "rm":
    print("gone")
else:
    sys.exit("docker: no such command")
"""


async def test_a_container_is_started_followed_and_stopped_through_its_own_command(
    tmp_path: Path,
) -> None:
    docker = tmp_path / "docker"
    docker.write_text(DOCKER.format(python=sys.executable), encoding="utf-8")
    docker.chmod(0o755)
    record = ContainerRecord(program=str(docker), name="gpu-dash-x")
    handle = await ContainerHandle.launch(record, ["image", "model"], os.environ)
    await handle.follow(tmp_path / "server.log")
    stopped = await handle.stop(starting=False, grace_s=25)
    await handle.clear_leftovers()
    assert stopped.exit_code == 137
    assert log_of(tmp_path) == "a line of the container\n"
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert calls[0] == "run --detach --name gpu-dash-x image model"
    assert "stop -t 25 gpu-dash-x" in calls
    assert calls[-1] == "rm --force gpu-dash-x"


async def test_a_refusal_of_the_container_program_is_told_in_its_words(tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho 'no such image' >&2\nexit 125\n", encoding="utf-8")
    docker.chmod(0o755)
    with pytest.raises(ServerError, match="run: no such image"):
        await ContainerHandle.launch(
            ContainerRecord(program=str(docker), name="x"), ["image"], os.environ
        )


async def test_a_disk_without_room_for_the_status_starts_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    with pytest.raises(ServerError, match="No such file or directory"):
        await ProcessHandle.launch(
            [sys.executable, "-c", f"open({str(marker)!r}, 'w').close()"],
            os.environ,
            folder=str(tmp_path),
            log_path=tmp_path / "server.log",
            status_path=tmp_path / "no-such-folder" / "keeper.json",
        )
    assert not marker.exists()
