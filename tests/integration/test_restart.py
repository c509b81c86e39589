"""A server that fails is started again, and one that fails in a loop is left alone."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import msgspec
import psutil

from gpu_dash.agent.home import AgentHome
from gpu_dash.agent.spawn import ensure_agent
from gpu_dash.model.commands import Launch, StopServer
from gpu_dash.model.server import ServerState
from gpu_dash.server.profile_file import load_profile
from tests.integration.commands import wait_for, write_profile
from tests.integration.test_agent import Watcher, ready


def launch(folder: Path, restarts: int, delay: str) -> Launch:
    path = write_profile(folder)
    text = path.read_text(encoding="utf-8")
    policy = f'restarts = {restarts}\nrestart_delay = "{delay}"\n'
    path.write_text(text.replace('model = "quick"\n', f'model = "quick"\n{policy}'))
    return Launch(profile=load_profile(str(path)), environment=dict(os.environ), folder=str(folder))


def kill(watcher: Watcher) -> int:
    pid = watcher.store.server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return pid


async def test_a_server_that_was_killed_comes_back_and_a_loop_of_crashes_ends(
    main_home: AgentHome, tmp_path: Path
) -> None:
    watcher = await ready(main_home, launch(tmp_path, restarts=1, delay="100ms"))
    first = watcher.store.session_folder
    pid = kill(watcher)
    await watcher.until(
        lambda store: store.server.state is ServerState.READY and store.server.pid != pid
    )
    assert watcher.store.session_folder != first

    kill(watcher)
    await watcher.until(lambda store: any("left alone" in n.text for n in store.notices))

    assert watcher.store.server.state is ServerState.FAILED
    await watcher.close()


async def test_the_next_agent_goes_on_with_the_policy_and_the_environment(
    main_home: AgentHome, tmp_path: Path
) -> None:
    command = launch(tmp_path, restarts=2, delay="100ms")
    environment = {**command.environment, "ONLY_IN_THE_SHELL": "a secret"}
    watcher = await ready(main_home, msgspec.structs.replace(command, environment=environment))
    for number in (1, 2):
        pid = kill(watcher)
        await watcher.until(
            lambda store, pid=pid: (
                store.server.state is ServerState.READY and store.server.pid != pid
            )
        )
        if number == 1:
            await watcher.close()
            os.kill(watcher.connection.welcome.pid, signal.SIGKILL)
            await asyncio.to_thread(
                wait_for, lambda: not main_home.is_running(), "the end of the agent"
            )
            assert "a secret" not in main_home.state_path.read_text(encoding="utf-8")
            await ensure_agent(main_home, "sim")
            watcher = await Watcher.open(main_home)
            await watcher.until(lambda store: store.server.state is ServerState.READY)
    last = watcher.store.server.pid
    assert last is not None
    assert psutil.Process(last).environ()["ONLY_IN_THE_SHELL"] == "a secret"

    kill(watcher)

    await watcher.until(lambda store: any("failed 3 times" in n.text for n in store.notices))
    await watcher.close()


async def test_a_stop_ends_the_waiting(main_home: AgentHome, tmp_path: Path) -> None:
    watcher = await ready(main_home, launch(tmp_path, restarts=3, delay="60s"))
    kill(watcher)
    await watcher.until(lambda store: any("start 1 of 3" in n.text for n in store.notices))

    assert (await watcher.ask(StopServer())).ok
    assert not (await watcher.ask(StopServer())).ok  # nothing waits any more
    await watcher.close()
