"""Faults on purpose, on a real vLLM: ``python -m tests.vllm.faults PROFILE [WORD …]``.

Stops it in each phase of its life, kills and freezes each of its processes, and leaves orphans,
each time with a load where there can be one. Prints the same table as ``python -m tests.faults``.
A start of a real vLLM takes half a minute to two, and each line takes one.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from gpu_dash.agent.store import Store
from gpu_dash.model.commands import StopServer
from gpu_dash.model.server import ServerState
from gpu_dash.server.profile_file import load_profile
from tests.faults.registry import alarms, has_failed
from tests.faults.stage import Outcome, Play, Stage
from tests.faults.table import print_table
from tests.integration.commands import gpu_dash, is_running, session_pids, wait_for

WAIT_S = 300.0
"""A cold start on two busy cores takes one to two minutes."""
CONCURRENCY = 8
SHARED_MEMORY = "1m"
CARD_MEMORY_LEFT = 1 << 30
"""Of a card that nobody uses the driver keeps less than this."""
WATCHED_S = 60.0
"""How long after a thaw the server may take to answer again."""

API_SERVER, ENGINE, WORKER = "API server", "EngineCore", "Worker"


class Faults:
    """The plays on one profile."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        loaded = load_profile(str(profile))
        self._server, self._gpu_source = loaded.server, loaded.gpu.source

    def plays(self) -> dict[str, Play]:
        """By what breaks, in the order of the table."""
        return dict(self._each())

    def _each(self) -> Iterator[tuple[str, Play]]:
        for stage_name in ("importing", "loading weights", "compiling", "sizing the KV cache"):
            yield f"stop while {stage_name}", self._stop_in_stage(stage_name)
        yield "stop when idle", self._stop_when_idle
        yield "stop under load", self._stop_under_load
        yield "stop again while it drains", self._stop_while_draining
        for role in (WORKER, ENGINE):
            yield f"{role} frozen under load, then thawed", self._freeze(role)
        yield f"{API_SERVER} frozen under load, then thawed", self._freeze_api_server
        yield f"{WORKER} frozen under load, then stopped", self._stop_frozen
        for role in (WORKER, ENGINE, API_SERVER):
            yield f"{role} killed under load", self._kill(role)
        yield "agent, keeper and API server killed: orphans", self._orphans
        yield "/dev/shm too small", self._shared_memory

    # -- stops -----------------------------------------------------------------------------------

    def _stop_in_stage(self, name: str) -> Play:
        async def run(stage: Stage) -> Outcome:
            await self._launch(stage)
            if name == "importing":
                await stage.until(lambda store: store.server.state is ServerState.STARTING)
                await _until_it_imports(stage)
            else:
                await stage.until(
                    lambda store: (
                        store.server.stage.startswith(name)
                        or store.server.state is ServerState.READY
                    )
                )
                if not stage.store.server.stage.startswith(name):
                    return Outcome(float("nan"), "this start has no such stage")
            return await self._stopped(stage)

        return run

    async def _stop_when_idle(self, stage: Stage) -> Outcome:
        await self._ready(stage)
        return await self._stopped(stage)

    async def _stop_under_load(self, stage: Stage) -> Outcome:
        await self._loaded(stage)
        return await self._stopped(stage)

    async def _stop_while_draining(self, stage: Stage) -> Outcome:
        await self._loaded(stage)
        os.kill(stage.server_pid, signal.SIGTERM)  # somebody else asked it to end
        return await self._stopped(stage)

    async def _stop_frozen(self, stage: Stage) -> Outcome:
        await self._loaded(stage)
        os.kill(_process(stage, WORKER).pid, signal.SIGSTOP)
        await stage.until(_is_stuck)
        return await self._stopped(stage)

    async def _stopped(self, stage: Stage) -> Outcome:
        assert stage.watcher is not None
        pid = stage.store.server.pid
        began = time.monotonic()
        await stage.watcher.ask(StopServer())
        await stage.until(lambda store: store.session_ended)
        seconds = time.monotonic() - began
        said = f"{stage.store.server.state}: {stage.store.server.detail}".rstrip(": ")
        clean = (pid is None or not session_pids(pid)) and await self._cards_are_free(stage)
        return Outcome(seconds, said, clean, stage.files_are_whole())

    # -- freezes and kills -----------------------------------------------------------------------

    def _freeze(self, role: str) -> Play:
        async def run(stage: Stage) -> Outcome:
            await self._loaded(stage)
            process = _process(stage, role)
            outcome = await stage.timed(
                lambda: os.kill(process.pid, signal.SIGSTOP),
                _is_stuck,
                lambda store: next(f.message for f in store.findings if f.kind == "stuck"),
            )
            os.kill(process.pid, signal.SIGCONT)
            return await self._thawed(stage, outcome)

        return run

    async def _freeze_api_server(self, stage: Stage) -> Outcome:
        await self._loaded(stage)
        outcome = await stage.timed(
            lambda: os.kill(stage.server_pid, signal.SIGSTOP),
            lambda store: store.server.state is ServerState.UNREACHABLE or _is_stuck(store),
            lambda store: (
                next((f.message for f in store.findings if f.kind == "stuck"), "")
                or store.server.detail
            ),
        )
        os.kill(stage.server_pid, signal.SIGCONT)
        return await self._thawed(stage, outcome)

    async def _thawed(self, stage: Stage, outcome: Outcome) -> Outcome:
        """It answers again, and nothing was started anew."""
        done = stage.store.requests_ok
        stage.wait_s = WATCHED_S
        await stage.until(lambda store: store.requests_ok > done + CONCURRENCY)
        stage.wait_s = WAIT_S
        outcome.is_whole = stage.store.server.state is ServerState.READY and stage.files_are_whole()
        return outcome

    def _kill(self, role: str) -> Play:
        async def run(stage: Stage) -> Outcome:
            await self._loaded(stage)
            pid, leader = _process(stage, role).pid, stage.server_pid
            outcome = await stage.timed(
                lambda: os.kill(pid, signal.SIGKILL),
                lambda store: (
                    has_failed(store)
                    or alarms(store)
                    or any("is gone" in notice.text for notice in store.notices)
                ),
                lambda store: "",
            )
            await stage.until(lambda store: store.session_ended)
            outcome.said = stage.store.server.detail
            outcome.is_clean = not session_pids(leader) and await self._cards_are_free(stage)
            outcome.is_whole = stage.files_are_whole()
            return outcome

        return run

    async def _orphans(self, stage: Stage) -> Outcome:
        """The worst case: nobody is left who knows of the engine and its workers."""
        await self._loaded(stage)
        leader = stage.server_pid
        for pid in (stage.agent_pid, stage.keeper_pid(), leader):
            os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(wait_for, lambda: not is_running(leader), "the end of the leader")
        began = time.monotonic()
        listed = await asyncio.to_thread(gpu_dash, "orphans", "--json")
        seconds = time.monotonic() - began
        orphans = json.loads(listed.stdout)
        said = "; ".join(
            f"{each['title']} ({each['memory_bytes'] / 2**30:.1f} GiB"
            + "".join(
                f", {held / 2**30:.1f} GiB on GPU {gpu}"
                for gpu, held in each["gpu_memory_bytes"].items()
            )
            + ")"
            for each in orphans
        )
        ending = time.monotonic()
        ended = await asyncio.to_thread(gpu_dash, "orphans", "--end", "--yes", timeout=60)
        said += f"; ended in {time.monotonic() - ending:.1f} s"
        # Python's own resource tracker has no title and ends by itself, with the last of them.
        await asyncio.to_thread(wait_for, lambda: not session_pids(leader), "an empty session")
        clean = ended.returncode == 0
        return Outcome(seconds, said, clean, is_whole=len(orphans) > 1)

    async def _shared_memory(self, stage: Stage) -> Outcome:
        """It starts with a /dev/shm of its own that holds next to nothing."""
        command = shlex.join(self._server.command)
        program = stage.folder / "small-shared-memory"
        program.write_text(
            "#!/bin/sh\n"
            f"exec unshare -rm sh -c 'mount -t tmpfs -o size={SHARED_MEMORY} tmpfs /dev/shm "
            f'&& exec {command} "$@"\' sh "$@"\n'
        )
        program.chmod(0o755)
        profile = stage.folder / "small-shared-memory.toml"
        lines = self._profile.read_text(encoding="utf-8").splitlines()
        profile.write_text(
            "\n".join(
                f'command = ["{program}"]' if line.startswith("command =") else line
                for line in lines
            )
        )
        profile.chmod(0o600)
        stage.wait_s = WAIT_S
        await stage.launch(profile, self._gpu_source)
        began = time.monotonic()
        await stage.until(lambda store: has_failed(store) or alarms(store))
        seconds = time.monotonic() - began
        await stage.until(lambda store: store.session_ended)
        cause = next(f for f in stage.store.findings if f.root and f.source == "log")
        return Outcome(seconds, f"{cause.kind}: {cause.message}", stage.session_is_empty())

    # -- the ground ------------------------------------------------------------------------------

    async def _launch(self, stage: Stage) -> None:
        stage.wait_s = WAIT_S
        await stage.launch(self._profile, self._gpu_source)

    async def _ready(self, stage: Stage) -> None:
        await self._launch(stage)
        await stage.until(
            lambda store: store.server.state in (ServerState.READY, ServerState.FAILED)
        )
        assert stage.store.server.state is ServerState.READY, stage.store.server.detail

    async def _loaded(self, stage: Stage) -> None:
        """A server under load; the one that an earlier fault left, if it did."""
        if stage.watcher is not None and stage.store.server.state is ServerState.READY:
            return
        await self._ready(stage)
        await stage.load(CONCURRENCY)

    async def _cards_are_free(self, stage: Stage) -> bool:
        """Whether the server's cards hold nothing any more, where there are cards."""
        cards = stage.store.server.visible_gpus

        def free(store: Store) -> bool:
            return all(
                (track.latest.memory_used_bytes or 0) < CARD_MEMORY_LEFT
                for track in store.gpu_tracks()
                if track.latest is not None and (cards is None or track.info.gpu in cards)
            )

        try:
            await stage.until(free)
        except TimeoutError:
            return False
        return True


def _is_stuck(store: Store) -> bool:
    return any(finding.kind == "stuck" for finding in store.findings)


def _process(stage: Stage, role: str) -> psutil.Process:
    """A process of the server; of several workers the last one."""
    if role == API_SERVER:
        return psutil.Process(stage.server_pid)
    title = f"VLLM::{role}"
    found = [
        child
        for child in psutil.Process(stage.server_pid).children(recursive=True)
        if child.cmdline() and child.cmdline()[0].startswith(title)
    ]
    assert found, f"no process of the server calls itself {title}"
    return max(found, key=lambda child: child.cmdline()[0])


async def _until_it_imports(stage: Stage) -> None:
    """Until the server's first process works: it prints nothing for seconds."""
    pid = stage.server_pid
    await asyncio.to_thread(
        wait_for, lambda: psutil.Process(pid).cpu_times().user > 1.0, "the server to import"
    )


def main(arguments: list[str]) -> int:
    """Play what the words name, or all."""
    if not arguments:
        print(__doc__)
        return 2
    plays = Faults(Path(arguments[0]).absolute()).plays()
    return 1 if asyncio.run(print_table(plays, arguments[1:])) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
