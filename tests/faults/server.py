"""The server ends, hangs, or is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

from gpu_dash.model.commands import StopServer
from gpu_dash.model.server import ServerState
from tests.faults.registry import alarms, detail, fault, has_failed, newest_notice
from tests.faults.stage import Outcome, Stage
from tests.integration.commands import gpu_dash


async def _ended_by(stage: Stage, fault: Callable[[], object]) -> Outcome:
    """The first alarm counts, and what is said in the end."""
    outcome = await stage.timed(
        fault, lambda store: has_failed(store) or alarms(store), lambda store: ""
    )
    await stage.until(lambda store: store.session_ended)
    outcome.said = detail(stage.store)
    outcome.is_clean, outcome.is_whole = stage.session_is_empty(), stage.files_are_whole()
    return outcome


async def _end_of_server(stage: Stage, kill: signal.Signals, *, child: bool = False) -> Outcome:
    await stage.serve()
    pid = stage.server_child() if child else stage.server_pid
    return await _ended_by(stage, lambda: os.kill(pid, kill))


@fault("server killed (SIGKILL)")
async def _kill_server(stage: Stage) -> Outcome:
    return await _end_of_server(stage, signal.SIGKILL)


@fault("engine process killed")
async def _kill_engine(stage: Stage) -> Outcome:
    return await _end_of_server(stage, signal.SIGKILL, child=True)


@fault("server ended by somebody else (SIGTERM, exit code 0)")
async def _term_server(stage: Stage) -> Outcome:
    return await _end_of_server(stage, signal.SIGTERM)


async def _sim_fault(stage: Stage, fault: str) -> Outcome:
    await stage.serve()
    return await _ended_by(stage, lambda: stage.break_server(fault))


@fault("worker killed")
async def _crash(stage: Stage) -> Outcome:
    return await _sim_fault(stage, "crash")


@fault("collective timed out (engine dies, exit code 0)")
async def _nccl(stage: Stage) -> Outcome:
    return await _sim_fault(stage, "nccl_timeout")


@fault("card fell off the bus")
async def _lost(stage: Stage) -> Outcome:
    return await _sim_fault(stage, "lose_gpu")


@fault("worker frozen under load, /health stays 200")
async def _freeze(stage: Stage) -> Outcome:
    await stage.serve()
    return await stage.timed(
        lambda: stage.break_server("freeze"),
        lambda store: any(f.kind == "stuck" for f in store.findings),
        lambda store: next(f.message for f in store.findings if f.kind == "stuck"),
    )


@fault("API server frozen (SIGSTOP)")
async def _stop_server_process(stage: Stage) -> Outcome:
    await stage.serve()
    pid = stage.server_pid
    outcome = await stage.timed(
        lambda: os.kill(pid, signal.SIGSTOP),
        lambda store: store.server.state is ServerState.UNREACHABLE,
        detail,
    )
    os.kill(pid, signal.SIGCONT)
    await stage.until(lambda store: store.server.state is ServerState.READY)
    return outcome


@fault("start that does not become ready")
async def _slow_start(stage: Stage) -> Outcome:
    await stage.serve(flags="", server="", wait=False, load=False)
    await stage.until(lambda store: store.server.state is ServerState.READY)
    assert stage.watcher is not None
    assert (await stage.watcher.ask(StopServer())).ok
    path = stage.folder / "quick.toml"
    text = path.read_text().replace('ready_timeout = "20s"', 'ready_timeout = "2s"')
    path.write_text(text.replace("sim-startup = 0.2", "sim-startup = 60"))
    began = time.monotonic()
    done = await asyncio.to_thread(gpu_dash, "run", str(path))
    assert done.returncode == 3, done.stderr
    return Outcome(time.monotonic() - began, done.stderr.strip().splitlines()[-1])


@fault("crash loop with restarts = 2")
async def _loop(stage: Stage) -> Outcome:
    await stage.serve(
        flags='sim-fault = "crash@0.3"',
        server='restarts = 2\nrestart_delay = "200ms"',
        wait=False,
    )
    outcome = await stage.timed(
        lambda: None,
        lambda store: any("left alone" in n.text for n in store.notices),
        newest_notice,
    )
    outcome.is_clean = stage.session_is_empty()
    return outcome


async def _stopped(stage: Stage) -> Outcome:
    assert stage.watcher is not None
    began = time.monotonic()
    assert (await stage.watcher.ask(StopServer())).ok
    await stage.until(lambda store: store.session_ended)
    state = stage.store.server.state
    seconds = time.monotonic() - began
    return Outcome(seconds, str(state), stage.session_is_empty(), stage.files_are_whole())


@fault("stop while the model loads")
async def _stop_loading(stage: Stage) -> Outcome:
    await stage.serve(flags="#", wait=False)
    await stage.until(lambda store: store.server.state is ServerState.STARTING)
    return await _stopped(stage)


@fault("stop under load")
async def _stop_loaded(stage: Stage) -> Outcome:
    await stage.serve()
    return await _stopped(stage)


@fault("stop of a server whose worker hangs")
async def _stop_frozen(stage: Stage) -> Outcome:
    await stage.serve()
    stage.break_server("freeze")
    return await _stopped(stage)
