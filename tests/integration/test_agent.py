"""The main agent, its server and its recording when one of them is killed."""

from __future__ import annotations

import asyncio
import csv
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gpu_dash.agent.client import AgentConnection, store_of
from gpu_dash.agent.home import MAIN, AgentHome
from gpu_dash.agent.spawn import ensure_agent
from gpu_dash.agent.store import Store
from gpu_dash.model.commands import (
    PROTOCOL,
    Command,
    Control,
    FromAgent,
    Hello,
    Launch,
    PauseLoad,
    Published,
    Refused,
    Reply,
    ResumeLoad,
    SetConcurrency,
    SetRate,
    SnapshotSent,
    StartRamp,
    StopLoad,
    StopServer,
    TakeControl,
    Watch,
)
from gpu_dash.model.frames import encode_frame, read_frames
from gpu_dash.model.load import LoadState
from gpu_dash.model.server import ServerState
from gpu_dash.server.profile_file import load_profile
from tests.fakes.stub_server import StubServer
from tests.integration.commands import (
    gpu_dash,
    is_running,
    session_pids,
    status,
    wait_for,
    write_profile,
)


class Watcher:
    """A viewer that folds what it is sent."""

    def __init__(self, connection: AgentConnection) -> None:
        self.connection = connection
        self.store = Store()
        self.has_control = False
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._follow())

    @classmethod
    async def open(cls, home: AgentHome, *, read_only: bool = False) -> Watcher:
        return cls(await AgentConnection.open(home, role="viewer", read_only=read_only))

    async def _follow(self) -> None:
        async for message in self.connection.messages():
            if isinstance(message, SnapshotSent):
                self.store = store_of(message)
            elif isinstance(message, Published):
                self.store.fold(message.event)
            elif isinstance(message, Control):
                self.has_control = message.yours
            self._changed.set()

    async def until(self, condition: Any, timeout: float = 20.0) -> None:
        async with asyncio.timeout(timeout):
            while not condition(self.store):
                self._changed.clear()
                await self._changed.wait()

    async def ask(self, command: Command) -> Reply:
        return await self.connection.ask(command)

    async def close(self) -> None:
        self._task.cancel()
        await self.connection.close()


@pytest.fixture
async def home() -> AsyncIterator[AgentHome]:
    """A main agent; whatever it runs is stopped at the end."""
    home = AgentHome.named(MAIN)
    await ensure_agent(home, "sim")
    yield home
    done = await asyncio.to_thread(gpu_dash, "stop", "--all")
    assert done.returncode == 0, done.stderr


def launch(folder: Path, **fields: Any) -> Launch:
    profile = load_profile(str(write_profile(folder, **fields)))
    return Launch(profile=profile, environment=dict(os.environ), folder=str(folder))


async def ready(home: AgentHome, command: Launch) -> Watcher:
    """A watcher of a server that is up."""
    watcher = await Watcher.open(home)
    reply = await watcher.ask(command)
    assert reply.ok, reply.error
    await watcher.until(lambda store: store.server.state is ServerState.READY)
    return watcher


async def test_keys_change_the_load_and_the_effect_comes_back_as_an_event(
    home: AgentHome, tmp_path: Path
) -> None:
    watcher = await ready(home, launch(tmp_path))
    assert (await watcher.ask(StartRamp())).ok
    await watcher.until(lambda store: len(store.steps) == 1)
    assert (await watcher.ask(SetConcurrency(concurrency=4))).ok
    await watcher.until(lambda store: store.load and store.load.concurrency == 4)
    await watcher.until(lambda store: store.tick and store.tick.in_flight == 4)
    assert (await watcher.ask(SetRate(rate=20.0))).ok
    await watcher.until(lambda store: store.load and store.load.request_rate == 20.0)
    await watcher.until(lambda store: store.steps and store.steps[-1].request_rate == 20.0)
    refused = await watcher.ask(SetRate(rate=-1.0))
    assert not refused.ok
    assert "requests per second" in refused.error
    assert "20 req/s" in (await asyncio.to_thread(gpu_dash, "status")).stdout
    assert (await watcher.ask(PauseLoad())).ok
    await watcher.until(lambda store: store.load.state is LoadState.PAUSED)
    assert (await watcher.ask(ResumeLoad())).ok
    await watcher.until(lambda store: store.load.state is LoadState.RUNNING)
    assert (await watcher.ask(StopLoad())).ok
    await watcher.until(lambda store: store.load.state is LoadState.IDLE)
    assert (await watcher.ask(StopServer())).ok
    await watcher.until(lambda store: store.session_ended)
    assert watcher.store.server.state is ServerState.STOPPED
    await watcher.close()


async def test_a_second_launch_is_refused_while_a_server_runs(
    home: AgentHome, tmp_path: Path
) -> None:
    watcher = await ready(home, launch(tmp_path))
    reply = await watcher.ask(launch(tmp_path))
    assert not reply.ok
    assert "stop it first" in reply.error
    await watcher.close()


async def test_after_a_stop_the_next_session_begins(home: AgentHome, tmp_path: Path) -> None:
    watcher = await ready(home, launch(tmp_path))
    first = watcher.store.session_folder
    assert (await watcher.ask(StopServer())).ok
    assert (await watcher.ask(launch(tmp_path))).ok
    await watcher.until(lambda store: store.server.state is ServerState.READY)
    assert watcher.store.session_folder != first
    await watcher.close()


async def test_one_viewer_has_the_controls_and_the_others_look(
    home: AgentHome, tmp_path: Path
) -> None:
    first = await ready(home, launch(tmp_path))
    second = await Watcher.open(home)
    await second.until(lambda store: store.server.state is ServerState.READY)
    refused = await second.ask(StartRamp())
    assert not refused.ok
    assert "controls" in refused.error
    assert (await second.ask(TakeControl())).ok
    assert (await second.ask(StartRamp())).ok
    assert not (await first.ask(StopLoad())).ok
    await first.close()
    await second.close()


async def test_a_viewer_that_ends_leaves_server_and_ramp_alone(
    home: AgentHome, tmp_path: Path
) -> None:
    watcher = await ready(home, launch(tmp_path))
    assert (await watcher.ask(SetConcurrency(concurrency=2))).ok
    await watcher.close()
    again = await Watcher.open(home)
    await again.until(lambda store: store.tick and store.tick.in_flight == 2)
    done = again.store.requests_ok
    await again.until(lambda store: store.requests_ok > done)
    await again.close()


async def test_a_killed_agent_leaves_server_and_files_and_the_next_one_goes_on(
    home: AgentHome, tmp_path: Path
) -> None:
    watcher = await ready(home, launch(tmp_path))
    assert (await watcher.ask(SetConcurrency(concurrency=2))).ok
    await watcher.until(lambda store: store.requests_ok > 20)
    before = watcher.store
    folder = Path(before.session_folder)
    assert before.server.pid is not None
    agent_pid = watcher.connection.welcome.pid
    os.kill(agent_pid, signal.SIGKILL)
    await watcher.close()
    wait_for(lambda: not is_running(agent_pid), "the end of the agent")

    assert is_running(before.server.pid)
    for name in ("gpu.csv", "requests.csv", "events.csv", "server.csv"):
        text = (folder / name).read_text(encoding="utf-8")
        assert text.endswith("\n"), name
        widths = {len(row) for row in csv.reader(text.splitlines())}
        assert len(widths) == 1, name
    assert [row["agent"] for row in status()] == [MAIN]

    rows_before = len((folder / "requests.csv").read_text(encoding="utf-8").splitlines())
    await ensure_agent(home)
    again = await Watcher.open(home)
    await again.until(lambda store: store.server.state is ServerState.READY)
    assert again.store.session == before.session
    assert again.store.server.pid == before.server.pid
    assert again.store.requests_ok >= rows_before - 1
    numbers = [line.number for line in again.store.log]
    assert numbers == sorted(set(numbers))

    assert (await again.ask(SetConcurrency(concurrency=1))).ok
    done = again.store.requests_ok
    await again.until(lambda store: store.requests_ok > done + 3)
    assert again.store.load is not None
    assert again.store.load.step > 1
    assert (await again.ask(StopServer())).ok
    await again.until(lambda store: store.session_ended)
    with (folder / "requests.csv").open(encoding="utf-8", newline="") as file:
        requests = [row["request"] for row in csv.DictReader(file)]
    assert len(requests) == len(set(requests)) > rows_before
    lines = (folder / "server.log").read_bytes().count(b"\n")
    assert again.store.log[-1].number == lines
    await again.close()


async def test_a_server_that_died_while_no_agent_ran_is_told_with_its_exit_code(
    home: AgentHome, tmp_path: Path
) -> None:
    watcher = await ready(home, launch(tmp_path))
    pid = watcher.store.server.pid
    assert pid is not None
    os.kill(watcher.connection.welcome.pid, signal.SIGKILL)
    await watcher.close()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not home.is_running() and not is_running(pid), "both ends")
    await ensure_agent(home)
    again = await Watcher.open(home)
    await again.until(lambda store: store.server.state is ServerState.FAILED)
    assert "signal 9 (SIGKILL)" in again.store.server.detail
    assert session_pids(pid) == []
    await again.close()


async def test_a_crash_is_shown_with_exit_code_and_cause(home: AgentHome, tmp_path: Path) -> None:
    watcher = await Watcher.open(home)
    assert (await watcher.ask(launch(tmp_path, flags='sim-fault = "crash@1"'))).ok
    await watcher.until(lambda store: store.session_ended, timeout=30)
    assert watcher.store.server.state is ServerState.FAILED
    assert "exit code" in watcher.store.server.detail
    assert any(finding.kind == "server_exit" for finding in watcher.store.findings)
    await watcher.close()


async def test_stop_leaves_nothing_of_the_session(home: AgentHome, tmp_path: Path) -> None:
    watcher = await ready(home, launch(tmp_path))
    pid = watcher.store.server.pid
    assert pid is not None
    assert len(session_pids(pid)) >= 2
    await watcher.close()
    done = await asyncio.to_thread(gpu_dash, "stop")
    assert done.returncode == 0, done.stderr
    assert session_pids(pid) == []
    assert status() == []


async def test_only_the_agent_can_be_stopped_and_its_server_is_taken_over(
    home: AgentHome, tmp_path: Path
) -> None:
    watcher = await ready(home, launch(tmp_path))
    pid = watcher.store.server.pid
    assert pid is not None
    await watcher.close()
    done = await asyncio.to_thread(gpu_dash, "stop", "--agent")
    assert (done.returncode, "goes on" in done.stdout) == (0, True), done.stderr
    assert is_running(pid)
    await ensure_agent(home)
    again = await Watcher.open(home)
    await again.until(lambda store: store.server.state is ServerState.READY)
    await again.close()


async def test_another_protocol_is_refused_in_words(home: AgentHome) -> None:
    reader, writer = await asyncio.open_unix_connection(str(home.socket_path))
    writer.write(encode_frame(Hello(protocol=PROTOCOL + 1, version="9.9", role="viewer")))
    async with asyncio.timeout(5):
        async for message in read_frames(reader, FromAgent):
            assert isinstance(message, Refused)
            assert "9.9" in message.reason
            assert "the agent is too old" in message.reason
            break
    writer.close()
    await writer.wait_closed()


async def test_garbage_on_the_socket_harms_nobody(home: AgentHome, tmp_path: Path) -> None:
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 4000, b"\x05\x00\x00\x00hello"):
        _, writer = await asyncio.open_unix_connection(str(home.socket_path))
        writer.write(garbage)
        await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    watcher = await ready(home, launch(tmp_path))
    await watcher.close()


async def test_a_server_that_is_not_ours_goes_on_after_a_stop(
    home: AgentHome, tmp_path: Path
) -> None:
    log = tmp_path / "their.log"
    log.write_text("ERROR 11-30 18:00:00 [x.py:1] torch.OutOfMemoryError: CUDA out of memory\n")
    with StubServer("--sim-startup", "0") as server:
        server.wait_until_ready()
        watcher = await Watcher.open(home)
        begin = Watch(base_url=f"http://127.0.0.1:{server.port}", log=str(log), gpu_source="none")
        assert (await watcher.ask(begin)).ok
        await watcher.until(lambda store: store.server.state is ServerState.READY)
        with log.open("a", encoding="utf-8") as file:
            file.write("a new line\n")
        await watcher.until(lambda store: any(line.text == "a new line" for line in store.log))
        assert watcher.store.findings == []
        assert watcher.store.log[-1].number == 2
        done = await asyncio.to_thread(gpu_dash, "stop", "--server")
        assert "goes on" in done.stdout
        await watcher.until(lambda store: store.session_ended)
        assert len(server.session()) >= 1
        await watcher.close()


async def test_without_a_terminal_nothing_is_launched(home: AgentHome, tmp_path: Path) -> None:
    done = await asyncio.to_thread(gpu_dash, str(write_profile(tmp_path)))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    (row,) = status()
    assert row["server"]["state"] == "none"
