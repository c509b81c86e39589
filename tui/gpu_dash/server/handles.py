"""What is supervised: a process of ours, a container, or a server that is somebody else's.

A handle knows how to notice the end and how to stop; it knows no state and publishes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from gpu_dash.model.errors import ServerError
from gpu_dash.model.server import HandleKind, ProcessIdentity
from gpu_dash.server.container_program import call
from gpu_dash.server.log_command import LogCommand, container_command
from gpu_dash.server.processes import (
    is_alive,
    reap_in_background,
    session_members,
    signal_process,
    signal_session,
)

KEEPER_START_S = 10.0
POLL_S = 0.05
LEFTOVERS_GRACE_S = 8.0
"""After its leader has ended, the rest of a session gets SIGTERM and this long before SIGKILL:
vLLM's orphaned engine and workers were seen to take 5.5 to 7.4 s."""
KILL_S = 10.0
"""After SIGKILL, how long until a process counts as one that cannot be killed (D state)."""
FORCE_MARGIN_S = 20.0
"""vLLM may need this much longer than its own ``--shutdown-timeout``."""
STARTING_GRACE_S = 10.0
"""A server that still starts has no request to finish. It was seen to take 5.4 s while it loads,
and not to listen at all while it compiles."""


class Stopped(msgspec.Struct, frozen=True):
    """What a stop came to."""

    exit_code: int | None
    """``None``: not known."""
    leftovers: tuple[int, ...] = ()
    """Pids that even SIGKILL did not end: they wait in the driver."""


class ServerHandle(Protocol):
    """The three kinds of server behind one face."""

    @property
    def kind(self) -> HandleKind:
        """Which of the three it is."""
        ...

    @property
    def pid(self) -> int | None:
        """The server's process on this host, if it is ours."""
        ...

    async def wait(self) -> int | None:
        """Wait for the end; the exit code, or ``None`` where it cannot be known."""
        ...

    async def stop(self, *, starting: bool, grace_s: float) -> Stopped:
        """End it, and prove that nothing of it is left."""
        ...

    async def clear_leftovers(self) -> tuple[int, ...]:
        """End what outlived the server; the pids that could not be ended."""
        ...


class ProcessRecord(msgspec.Struct, frozen=True):
    """What the next agent needs to adopt a process: goes into the state file."""

    status_path: str
    keeper: ProcessIdentity
    server: ProcessIdentity


class _KeeperStatus(msgspec.Struct):
    keeper: ProcessIdentity
    server: ProcessIdentity | None = None
    error: str | None = None
    exit_code: int | None = None


class ProcessHandle:
    """A server in a session of its own, below a keeper of its own."""

    kind = HandleKind.PROCESS

    def __init__(self, record: ProcessRecord) -> None:
        self.record = record

    @property
    def pid(self) -> int:
        return self.record.server.pid

    @classmethod
    async def launch(
        cls,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        folder: str,
        log_path: Path,
        status_path: Path,
    ) -> ProcessHandle:
        """Start a keeper and, through it, the server.

        Raises:
            ServerError: the program cannot be started.
        """
        keeper = _start_keeper(argv, environment, folder, log_path, status_path)
        deadline = time.monotonic() + KEEPER_START_S
        while time.monotonic() < deadline:
            status = _read_status(status_path)
            if status is not None and status.error is not None:
                keeper.communicate()
                raise ServerError(f"{status.error}; check the profile's `server.command`")
            if status is not None and status.server is not None:
                assert keeper.stderr is not None
                keeper.stderr.close()
                record = ProcessRecord(str(status_path), status.keeper, status.server)
                reap_in_background(keeper)
                return cls(record)
            if keeper.poll() is not None:
                break
            await asyncio.sleep(POLL_S / 5)
        keeper.kill()
        _, said = keeper.communicate()
        last_line = said.decode(errors="replace").strip().rpartition("\n")[2]
        raise ServerError(f"the server's keeper did not start: {last_line or 'no answer'}")

    @classmethod
    def adopt(cls, record: ProcessRecord) -> ProcessHandle:
        """Take over a process that an earlier agent launched, running or ended."""
        return cls(record)

    @property
    def is_running(self) -> bool:
        """Whether the server's leading process lives."""
        return is_alive(self.record.server)

    async def wait(self) -> int | None:
        await wait_for_end(self.record.server)
        return await self._exit_code()

    async def stop(self, *, starting: bool, grace_s: float) -> Stopped:
        """End the session: SIGTERM (SIGINT while it loads, where vLLM swallows SIGTERM), a time
        of grace, SIGKILL for all that is left."""
        leader = self.record.server
        signal_process(leader, signal.SIGINT if starting else signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while is_alive(leader) and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
        leftovers = await self.clear_leftovers()
        return Stopped(exit_code=await self._exit_code(), leftovers=leftovers)

    async def clear_leftovers(self) -> tuple[int, ...]:
        leader = self.record.server
        if not is_alive(leader):
            signal_session(leader, signal.SIGTERM)
            await _until_empty(leader, LEFTOVERS_GRACE_S)
        deadline = time.monotonic() + KILL_S
        while session_members(leader) and time.monotonic() < deadline:
            signal_session(leader, signal.SIGKILL)
            await asyncio.sleep(POLL_S)
        return tuple(session_members(leader))

    async def _exit_code(self) -> int | None:
        """The code that the keeper wrote down; it does so right after the end."""
        deadline = time.monotonic() + 2.0
        while True:
            status = _read_status(Path(self.record.status_path))
            code = None if status is None else status.exit_code
            if code is not None or not is_alive(self.record.keeper):
                break
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(POLL_S / 5)
        if code is None:
            status = _read_status(Path(self.record.status_path))
            code = None if status is None else status.exit_code
        return code


class ExternalHandle:
    """A server that somebody else started: nothing to start, nothing to stop."""

    kind = HandleKind.EXTERNAL
    pid = None

    def __init__(self) -> None:
        self._let_go = asyncio.Event()

    async def wait(self) -> int | None:
        """Ends when we stop watching: that it does not answer is all that can be seen of it."""
        await self._let_go.wait()
        return None

    async def stop(self, *, starting: bool, grace_s: float) -> Stopped:
        self._let_go.set()
        return Stopped(exit_code=None)

    async def clear_leftovers(self) -> tuple[int, ...]:
        return ()


class ContainerRecord(msgspec.Struct, frozen=True):
    """What the next agent needs to adopt a container."""

    program: str
    name: str


@dataclass
class ContainerHandle:
    """A container, started, followed and stopped through docker's or podman's own command.

    Its processes are never signalled: their pids are the container's business.
    """

    record: ContainerRecord
    environment: Mapping[str, str]
    kind = HandleKind.CONTAINER
    pid = None
    _log: LogCommand | None = None

    @classmethod
    async def launch(
        cls,
        record: ContainerRecord,
        run_arguments: Sequence[str],
        environment: Mapping[str, str],
    ) -> ContainerHandle:
        """``PROGRAM run --detach --name NAME …``; values of variables stay out of the arguments.

        Raises:
            ServerError: the container program refused, in its own words.
        """
        handle = cls(record, environment)
        words = (record.program, "run", "--detach", "--name", record.name, *run_arguments)
        await call(words, environment)
        return handle

    async def follow(self, log_path: Path) -> None:
        """Append the container's output to a file for as long as it runs."""
        argv = container_command(self.record.name, program=self.record.program)
        self._log = LogCommand(argv, log_path, self.environment)
        await self._log.start()

    async def wait(self) -> int | None:
        try:
            code = int(await self._call("wait"))
        except (ServerError, ValueError):
            code = None
        if self._log is not None:
            await self._log.finish()
        return code

    async def stop(self, *, starting: bool, grace_s: float) -> Stopped:
        await self._call("stop", "-t", str(round(grace_s)))
        stopped = Stopped(exit_code=await self.wait())
        await self.clear_leftovers()
        return stopped

    async def clear_leftovers(self) -> tuple[int, ...]:
        """The end of a container ends its processes; its name is given free."""
        try:
            await self._call("rm", "--force")
        except ServerError:
            return ()
        return ()

    async def _call(self, *words: str) -> str:
        """A verb on this container: what ``-t`` says is written the same in docker and podman."""
        return await call((self.record.program, *words, self.record.name), self.environment)


async def _until_empty(leader: ProcessIdentity, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while session_members(leader) and time.monotonic() < deadline:
        await asyncio.sleep(POLL_S)


def _start_keeper(
    argv: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    log_path: Path,
    status_path: Path,
) -> subprocess.Popen[bytes]:
    """Start the keeper in a session of its own, so that nothing sent to ours reaches it.

    ``-P`` keeps the person's working directory off the keeper's import path.
    """
    keeper = subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "gpu_dash.server.keeper"),
            *(str(status_path), str(log_path)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wanted = {"argv": list(argv), "environment": dict(environment), "folder": folder}
    assert keeper.stdin is not None
    with contextlib.suppress(BrokenPipeError), keeper.stdin:
        keeper.stdin.write(json.dumps(wanted).encode())
    keeper.stdin = None
    return keeper


async def wait_for_end(identity: ProcessIdentity) -> None:
    """Wait until that very process has ended, without polling it."""
    try:
        handle = os.pidfd_open(identity.pid)
    except OSError:
        return
    try:
        if not is_alive(identity):
            return
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        notice: Callable[[], None] = lambda: None if ended.done() else ended.set_result(None)  # noqa: E731
        loop.add_reader(handle, notice)
        try:
            await ended
        finally:
            loop.remove_reader(handle)
    finally:
        os.close(handle)


def _read_status(path: Path) -> _KeeperStatus | None:
    try:
        data: Any = json.loads(path.read_bytes())
        return msgspec.convert(data, _KeeperStatus)
    except (OSError, ValueError, msgspec.ValidationError):
        return None
