"""gpu-dash itself breaks."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

from gpu_dash.agent.spawn import ensure_agent
from gpu_dash.model.gpu import GpuSourceState
from gpu_dash.model.server import ServerState
from tests.faults.registry import detail, fault, has_failed, newest_notice
from tests.faults.stage import Outcome, Stage, still_runs
from tests.integration.commands import is_running, wait_for
from tests.integration.test_agent import Watcher


async def _agent_ends(stage: Stage, number: signal.Signals) -> Outcome:
    await stage.serve()
    server, agent, folder = stage.server_pid, stage.agent_pid, stage.store.session_folder
    began = time.monotonic()
    os.kill(agent, number)
    assert stage.watcher is not None
    await stage.watcher.close()
    # Its lock and its socket go with its last thread, a moment after its pid.
    await asyncio.to_thread(wait_for, lambda: not stage.home.is_running(), "the end of the agent")
    assert still_runs(server)
    await ensure_agent(stage.home, "sim")
    stage.watcher = await Watcher.open(stage.home)
    await stage.until(lambda store: store.server.state is ServerState.READY)
    seconds = time.monotonic() - began
    same = stage.store.session_folder == folder and stage.server_pid == server
    return Outcome(seconds, newest_notice(stage.store), is_whole=same and stage.files_are_whole())


@fault("agent killed (SIGKILL)")
async def _agent_killed(stage: Stage) -> Outcome:
    return await _agent_ends(stage, signal.SIGKILL)


@fault("agent ended (SIGTERM)")
async def _agent_term(stage: Stage) -> Outcome:
    return await _agent_ends(stage, signal.SIGTERM)


@fault("dashboard killed, its connection cut")
async def _viewer(stage: Stage) -> Outcome:
    await stage.serve()
    assert stage.watcher is not None
    began = time.monotonic()
    await stage.watcher.close()
    stage.watcher = await Watcher.open(stage.home)
    await stage.until(lambda store: bool(store.session))
    await stage.goes_on()
    seconds = time.monotonic() - began
    return Outcome(seconds, "server, load and recording go on", is_whole=stage.files_are_whole())


async def _sampler_hurt(
    stage: Stage, number: signal.Signals, is_seen: Callable[[GpuSourceState], bool]
) -> Outcome:
    """A signal to the sampler, until the source's state shows it, and back."""
    await stage.serve()
    began = time.monotonic()
    os.kill(stage.child_of_agent("gpu_dash.gpu.sampler"), number)
    await stage.until(lambda store: is_seen(store.gpu_state))
    seconds, said = time.monotonic() - began, stage.store.gpu_detail
    await stage.until(lambda store: store.gpu_state is GpuSourceState.LIVE)
    return Outcome(seconds, said, is_whole=stage.files_are_whole())


@fault("GPU sampler killed")
async def _sampler_killed(stage: Stage) -> Outcome:
    return await _sampler_hurt(
        stage, signal.SIGKILL, lambda state: state is not GpuSourceState.LIVE
    )


@fault("GPU sampler hangs (SIGSTOP, as in a driver call)")
async def _sampler_frozen(stage: Stage) -> Outcome:
    stale = GpuSourceState.STALE
    return await _sampler_hurt(stage, signal.SIGSTOP, lambda state: state is stale)


@fault("load worker killed")
async def _load_killed(stage: Stage) -> Outcome:
    await stage.serve()
    pid = stage.child_of_agent("gpu_dash.load.worker")
    before = len(stage.store.notices)
    outcome = await stage.timed(
        lambda: os.kill(pid, signal.SIGKILL),
        lambda store: len(store.notices) > before or (store.load and store.load.detail),
        lambda store: newest_notice(store) or (store.load.detail if store.load else ""),
    )
    outcome.is_whole = stage.store.server.state is ServerState.READY
    return outcome


@fault("keeper killed, then the server")
async def _keeper(stage: Stage) -> Outcome:
    await stage.serve()
    os.kill(stage.keeper_pid(), signal.SIGKILL)
    outcome = await stage.timed(
        lambda: os.kill(stage.server_pid, signal.SIGKILL), has_failed, detail
    )
    outcome.is_clean, outcome.is_whole = stage.session_is_empty(), stage.files_are_whole()
    return outcome


@fault("hang-up (SIGHUP) of the agent")
async def _hangup(stage: Stage) -> Outcome:
    await stage.serve()
    began = time.monotonic()
    os.kill(stage.agent_pid, signal.SIGHUP)
    try:
        await stage.goes_on()
    finally:
        survived = is_running(stage.agent_pid)
    seconds = time.monotonic() - began
    return Outcome(seconds, "the agent goes on" if survived else "the agent ended")
