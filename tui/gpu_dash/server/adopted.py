"""The handle of a server that was started by hand and taken under supervision.

It has no keeper, so its exit code stays unknown, and its session may be a person's shell, so what
belongs to it is its tree of processes: noted while it lives, as a tree cannot be seen any more when
its root is gone.
"""

from __future__ import annotations

import asyncio
import signal
import time

import psutil

from gpu_dash.model.pace import at_intervals
from gpu_dash.model.server import HandleKind, ProcessIdentity
from gpu_dash.server.handles import (
    KILL_S,
    LEFTOVERS_GRACE_S,
    POLL_S,
    Stopped,
    wait_for_end,
)
from gpu_dash.server.processes import identify, is_alive, signal_process

TREE_INTERVAL_S = 2.0


class AdoptedHandle:
    """A process that is not ours by birth."""

    kind = HandleKind.PROCESS

    def __init__(self, server: ProcessIdentity) -> None:
        self.server = server
        self._tree: set[ProcessIdentity] = {server}
        self._note_tree()

    @property
    def pid(self) -> int:
        return self.server.pid

    async def wait(self) -> int | None:
        noting = asyncio.create_task(self._note_tree_regularly())
        try:
            await wait_for_end(self.server)
        finally:
            noting.cancel()
        return None

    async def stop(self, *, starting: bool, grace_s: float) -> Stopped:
        """SIGTERM (SIGINT while it loads), a time of grace, SIGKILL for all that is left."""
        self._note_tree()
        signal_process(self.server, signal.SIGINT if starting else signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while is_alive(self.server) and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
        return Stopped(exit_code=None, leftovers=await self.clear_leftovers())

    async def clear_leftovers(self) -> tuple[int, ...]:
        steps = [(signal.SIGKILL, KILL_S)]
        if not is_alive(self.server):
            steps.insert(0, (signal.SIGTERM, LEFTOVERS_GRACE_S))
        for number, seconds in steps:
            for process in self._living():
                signal_process(process, number)
            deadline = time.monotonic() + seconds
            while self._living() and time.monotonic() < deadline:
                await asyncio.sleep(POLL_S)
        return tuple(process.pid for process in self._living())

    def _living(self) -> list[ProcessIdentity]:
        return [process for process in self._tree if is_alive(process)]

    def _note_tree(self) -> None:
        if not is_alive(self.server):
            return
        try:
            children = psutil.Process(self.server.pid).children(recursive=True)
        except psutil.Error:
            return
        members = (identify(child.pid) for child in children)
        self._tree |= {member for member in members if member is not None}

    async def _note_tree_regularly(self) -> None:
        async for _ in at_intervals(TREE_INTERVAL_S):
            self._note_tree()
            self._tree = set(self._living()) | {self.server}
