"""What a fault is played on: a main agent, a server under load, and a person who watches."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from gpu_dash.agent.home import MAIN, AgentHome
from gpu_dash.agent.spawn import ensure_agent
from gpu_dash.agent.store import Store
from gpu_dash.model.commands import Launch, SetConcurrency
from gpu_dash.model.errors import GpuDashError
from gpu_dash.model.server import ServerState
from gpu_dash.server.profile_file import load_profile
from tests.integration.commands import gpu_dash, is_running, session_pids, write_profile
from tests.integration.test_agent import Watcher

CONCURRENCY = 4
WAIT_S = 40.0
CONTINUES = 5
"""So many more requests show that the load goes on."""


@dataclass
class Outcome:
    """A line of the table."""

    seconds: float
    said: str
    is_clean: bool = True
    is_whole: bool = True


Play = Callable[["Stage"], Awaitable[Outcome]]


@dataclass
class Stage:
    """One fault's world, with a state folder of its own."""

    folder: Path
    home: AgentHome = field(default_factory=lambda: AgentHome.named(MAIN))
    watcher: Watcher | None = None
    wait_s: float = WAIT_S
    """The longest that anything here may take to be seen."""

    @property
    def store(self) -> Store:
        """What the person sees."""
        assert self.watcher is not None
        return self.watcher.store

    async def serve(
        self,
        *,
        flags: str = "",
        server: str = "",
        source: str = "sim",
        load: bool = True,
        wait: bool = True,
    ) -> None:
        """Launch the stand-in, and load it."""
        path = write_profile(self.folder, flags=flags)
        text = path.read_text(encoding="utf-8")
        text = text.replace('model = "quick"\n', f'model = "quick"\n{server}\n')
        path.write_text(text.replace('source = "sim"', f'source = "{source}"'))
        await self.launch(path, source)
        if not wait:
            return
        await self.until(lambda store: store.server.state is ServerState.READY)
        if load:
            await self.load()

    async def launch(self, profile: Path, gpu_source: str) -> None:
        """Launch what a profile says, and do not wait for it."""
        await ensure_agent(self.home, gpu_source)
        self.watcher = await Watcher.open(self.home)
        launch = Launch(
            profile=load_profile(str(profile)),
            environment=dict(os.environ),
            folder=str(self.folder),
        )
        reply = await self.watcher.ask(launch)
        assert reply.ok, reply.error

    async def load(self, concurrency: int = CONCURRENCY) -> None:
        """Keep so many requests open, and wait until each has been answered once."""
        assert self.watcher is not None
        assert (await self.watcher.ask(SetConcurrency(concurrency=concurrency))).ok
        await self.until(lambda store: store.requests_ok > concurrency)

    async def goes_on(self) -> None:
        """Wait until so many more requests have been answered that the load goes on for sure."""
        done = self.store.requests_ok
        await self.until(lambda store: store.requests_ok > done + CONTINUES)

    @contextlib.contextmanager
    def environment(self, **variables: str) -> Iterator[None]:
        """What is started meanwhile has these variables."""
        os.environ.update(variables)
        try:
            yield
        finally:
            for name in variables:
                del os.environ[name]

    async def until(self, condition: Callable[[Store], Any]) -> None:
        """Wait for what a person would see."""
        assert self.watcher is not None
        await self.watcher.until(condition, timeout=self.wait_s)

    async def timed(
        self,
        fault: Callable[[], object],
        seen: Callable[[Store], Any],
        said: Callable[[Store], str],
    ) -> Outcome:
        """Break something, and take the time until it is seen."""
        began = time.monotonic()
        fault()
        await self.until(seen)
        return Outcome(time.monotonic() - began, said(self.store))

    def break_server(self, fault: str, gpu: int = 1) -> None:
        """Ask the stand-in to fail."""
        body = json.dumps({"fault": fault, "gpu": gpu}).encode()
        url = f"{self.store.server.base_url}/sim/fault"
        with urllib.request.urlopen(urllib.request.Request(url, body, method="POST"), timeout=5):
            pass

    @property
    def server_pid(self) -> int:
        """The server's leading process."""
        assert self.store.server.pid is not None
        return self.store.server.pid

    def server_child(self) -> int:
        """The server's engine process."""
        return psutil.Process(self.server_pid).children()[0].pid

    @property
    def agent_pid(self) -> int:
        """The agent."""
        assert self.watcher is not None
        return self.watcher.connection.welcome.pid

    def child_of_agent(self, module: str) -> int:
        """A process that the agent started."""
        for child in psutil.Process(self.agent_pid).children():
            if module in child.cmdline():
                return child.pid
        raise LookupError(module)

    def keeper_pid(self) -> int:
        """The parent of the server."""
        return psutil.Process(self.server_pid).ppid()

    @property
    def log(self) -> Path:
        """The server's log."""
        return Path(self.store.session_folder) / "server.log"

    def session_is_empty(self) -> bool:
        """Whether nothing of the server is left."""
        pid = self.store.server.pid
        return pid is None or not session_pids(pid)

    def files_are_whole(self) -> bool:
        """Whether each file of the recording ends with a whole line."""
        files = Path(self.store.session_folder).glob("*.csv")
        return all(path.read_bytes().endswith(b"\n") for path in files)


async def play(fault: Play) -> Outcome:
    """Play one fault in a world of its own."""
    folder = Path(tempfile.mkdtemp(prefix="gd-fault-"))
    os.environ["HOME"] = str(folder)
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
    stage = Stage(folder)
    try:
        outcome = await fault(stage)
        # Where it lay is of no concern, and differs each time.
        if stage.watcher is not None and stage.store.session_folder:
            session = stage.store.session_folder
            outcome.said = outcome.said.replace(f"{session}/", "").replace(session, "its folder")
        outcome.said = outcome.said.replace(f"{folder}/", "")
    except (GpuDashError, TimeoutError, AssertionError, LookupError, OSError) as error:
        outcome = Outcome(float("nan"), f"NOT SEEN: {type(error).__name__} {error}", False, False)
    finally:
        if stage.watcher is not None:
            await stage.watcher.close()
        await asyncio.to_thread(gpu_dash, "stop", "--all")
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("XDG_STATE_HOME") == str(folder / "state"):
                    outcome.is_clean = False
                    process.send_signal(signal.SIGCONT)
                    process.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def still_runs(pid: int) -> bool:
    """For the faults that a server must survive."""
    return is_running(pid)
