"""The faults."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from gpu_dash.agent.spawn import ensure_agent
from gpu_dash.agent.store import Store
from gpu_dash.model.commands import StopServer
from gpu_dash.model.gpu import GpuSourceState
from gpu_dash.model.server import ServerState
from tests.faults.stage import Outcome, Play, Stage, still_runs
from tests.integration.commands import gpu_dash, is_running, wait_for, write_profile
from tests.integration.test_agent import Watcher
from tests.orphan import leave_an_orphan
from tests.unit.logs.saying import capture

PLAYS: dict[str, Play] = {}
"""By what breaks, in the order of the table."""

CONTINUES = 5
"""So many more requests show that the load goes on."""
WORKER = "(Worker_TP1 pid=7) ERROR 11-30 10:00:00 [a.py:1] "


def _fault(name: str) -> Callable[[Play], Play]:
    def register(play: Play) -> Play:
        PLAYS[name] = play
        return play

    return register


def _failed(store: Store) -> bool:
    return store.server.state is ServerState.FAILED


def _detail(store: Store) -> str:
    return store.server.detail


def _notice(store: Store) -> str:
    return store.notices[-1].text if store.notices else ""


# -- before a launch ---------------------------------------------------------------------------


def _refused(stage: Stage, path: Path) -> Outcome:
    began = time.monotonic()
    done = gpu_dash("run", str(path))
    assert done.returncode == 2, done.stderr
    return Outcome(time.monotonic() - began, done.stderr.strip().removeprefix("gpu-dash: "))


def _edited(stage: Stage, old: str, new: str) -> Path:
    path = write_profile(stage.folder)
    path.write_text(path.read_text().replace(old, new))
    return path


@_fault("port taken")
async def _port(stage: Stage) -> Outcome:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        path = write_profile(stage.folder, port=listener.getsockname()[1])
        return await asyncio.to_thread(_refused, stage, path)


@_fault("model folder removed")
async def _model(stage: Stage) -> Outcome:
    return _refused(stage, _edited(stage, 'model = "quick"', 'model = "/no/such/model"'))


@_fault("program not installed")
async def _program(stage: Stage) -> Outcome:
    return _refused(stage, _edited(stage, '"{python}", "-m", "gpu_dash.demo"', '"no-such-vllm"'))


def _with_config(stage: Stage, flags: str) -> Path:
    model = stage.folder / "model"
    model.mkdir()
    config = {"num_attention_heads": 28, "max_position_embeddings": 4096}
    (model / "config.json").write_text(json.dumps(config))
    return _edited(stage, 'model = "quick"', f'model = "{model}"\n[server.flags]\n{flags}\n#')


@_fault("tensor parallel size that the heads do not divide by")
async def _heads(stage: Stage) -> Outcome:
    path = _with_config(stage, "")
    text = path.read_text().replace("[server.flags]\n\n#", "#").replace("= 2\nsim", "= 8\nsim")
    path.write_text(text)
    return _refused(stage, path)


@_fault("longer context than the model has")
async def _context(stage: Stage) -> Outcome:
    path = _with_config(stage, "")
    text = path.read_text().replace("[server.flags]\n\n#", "#")
    path.write_text(text.replace("sim-gpus = 2", "sim-gpus = 2\nmax-model-len = 999999"))
    return _refused(stage, path)


@_fault("orphans of an earlier server")
async def _orphan(stage: Stage) -> Outcome:
    pid = await asyncio.to_thread(leave_an_orphan)
    outcome = _refused(stage, _edited(stage, 'source = "sim"', 'source = "none"'))
    gpu_dash("orphans", "--end", "--yes")
    outcome.is_clean = not is_running(pid)
    return outcome


@_fault("flag with a wrong value")
async def _flag(stage: Stage) -> Outcome:
    await stage.serve(flags="max-num-seqs = 0", wait=False)
    return await stage.timed(lambda: None, _failed, _detail)


# -- the server ----------------------------------------------------------------------------------


async def _end_of_server(stage: Stage, kill: signal.Signals, *, child: bool = False) -> Outcome:
    await stage.serve()
    pid = stage.server_child() if child else stage.server_pid
    outcome = await stage.timed(lambda: os.kill(pid, kill), _failed, _detail)
    await stage.until(lambda store: store.session_ended)
    outcome.is_clean, outcome.is_whole = stage.session_is_empty(), stage.files_are_whole()
    return outcome


@_fault("server killed (SIGKILL)")
async def _kill_server(stage: Stage) -> Outcome:
    return await _end_of_server(stage, signal.SIGKILL)


@_fault("engine process killed")
async def _kill_engine(stage: Stage) -> Outcome:
    return await _end_of_server(stage, signal.SIGKILL, child=True)


@_fault("server ended by somebody else (SIGTERM, exit code 0)")
async def _term_server(stage: Stage) -> Outcome:
    return await _end_of_server(stage, signal.SIGTERM)


async def _sim_fault(stage: Stage, fault: str) -> Outcome:
    await stage.serve()
    outcome = await stage.timed(lambda: stage.break_server(fault), _failed, _detail)
    await stage.until(lambda store: store.session_ended)
    outcome.is_clean, outcome.is_whole = stage.session_is_empty(), stage.files_are_whole()
    return outcome


@_fault("worker killed")
async def _crash(stage: Stage) -> Outcome:
    return await _sim_fault(stage, "crash")


@_fault("collective timed out (engine dies, exit code 0)")
async def _nccl(stage: Stage) -> Outcome:
    return await _sim_fault(stage, "nccl_timeout")


@_fault("card fell off the bus")
async def _lost(stage: Stage) -> Outcome:
    return await _sim_fault(stage, "lose_gpu")


@_fault("worker frozen under load, /health stays 200")
async def _freeze(stage: Stage) -> Outcome:
    await stage.serve()
    return await stage.timed(
        lambda: stage.break_server("freeze"),
        lambda store: any(f.kind == "stuck" for f in store.findings),
        lambda store: next(f.message for f in store.findings if f.kind == "stuck"),
    )


@_fault("API server frozen (SIGSTOP)")
async def _stop_server_process(stage: Stage) -> Outcome:
    await stage.serve()
    pid = stage.server_pid
    outcome = await stage.timed(
        lambda: os.kill(pid, signal.SIGSTOP),
        lambda store: store.server.state is ServerState.UNREACHABLE,
        _detail,
    )
    os.kill(pid, signal.SIGCONT)
    await stage.until(lambda store: store.server.state is ServerState.READY)
    return outcome


@_fault("start that does not become ready")
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


@_fault("crash loop with restarts = 2")
async def _loop(stage: Stage) -> Outcome:
    await stage.serve(
        flags='sim-fault = "crash@0.3"',
        server='restarts = 2\nrestart_delay = "200ms"',
        wait=False,
    )
    outcome = await stage.timed(
        lambda: None, lambda store: any("left alone" in n.text for n in store.notices), _notice
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


@_fault("stop while the model loads")
async def _stop_loading(stage: Stage) -> Outcome:
    await stage.serve(flags="#", wait=False)
    await stage.until(lambda store: store.server.state is ServerState.STARTING)
    return await _stopped(stage)


@_fault("stop under load")
async def _stop_loaded(stage: Stage) -> Outcome:
    await stage.serve()
    return await _stopped(stage)


@_fault("stop of a server whose worker hangs")
async def _stop_frozen(stage: Stage) -> Outcome:
    await stage.serve()
    stage.break_server("freeze")
    return await _stopped(stage)


# -- its log -------------------------------------------------------------------------------------


async def _log_fault(stage: Stage, replace: str) -> Outcome:
    """What is said in the log after something happened to its file."""
    await stage.serve()
    log = stage.log
    if replace == "truncated":
        os.truncate(log, 0)
    elif replace == "deleted":
        log.unlink()
    else:
        log.rename(log.with_suffix(".log.1"))
    lines = stage.store.log_lines_total

    def write() -> None:
        with log.open("a") as more:
            more.write(f"{WORKER}NCCL error: internal error\n")

    outcome = await stage.timed(
        write,
        lambda store: any(f.kind == "nccl_internal" for f in store.findings),
        lambda store: f"{_notice(store)}; then: {store.findings[-1].kind}",
    )
    assert stage.store.log_lines_total > lines
    outcome.is_whole = stage.store.server.state is ServerState.READY
    return outcome


@_fault("log truncated")
async def _log_cut(stage: Stage) -> Outcome:
    return await _log_fault(stage, "truncated")


@_fault("log deleted, and written anew")
async def _log_deleted(stage: Stage) -> Outcome:
    return await _log_fault(stage, "deleted")


@_fault("log rotated")
async def _log_rotated(stage: Stage) -> Outcome:
    return await _log_fault(stage, "renamed")


@_fault("log burst: 19,829 lines at once, the cause in line 360")
async def _burst(stage: Stage) -> Outcome:
    await stage.serve()
    data = capture("worker-killed")

    def write() -> None:
        with stage.log.open("ab") as more:
            more.write(data)

    return await stage.timed(
        write,
        lambda store: any(f.kind == "worker_died" and f.root for f in store.findings),
        lambda store: next(f.message for f in store.findings if f.kind == "worker_died"),
    )


# -- gpu-dash itself -----------------------------------------------------------------------------


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
    return Outcome(seconds, _notice(stage.store), is_whole=same and stage.files_are_whole())


@_fault("agent killed (SIGKILL)")
async def _agent_killed(stage: Stage) -> Outcome:
    return await _agent_ends(stage, signal.SIGKILL)


@_fault("agent ended (SIGTERM)")
async def _agent_term(stage: Stage) -> Outcome:
    return await _agent_ends(stage, signal.SIGTERM)


@_fault("dashboard killed, its connection cut")
async def _viewer(stage: Stage) -> Outcome:
    await stage.serve()
    assert stage.watcher is not None
    done = stage.store.requests_ok
    began = time.monotonic()
    await stage.watcher.close()
    stage.watcher = await Watcher.open(stage.home)
    await stage.until(lambda store: store.requests_ok > done + CONTINUES)
    seconds = time.monotonic() - began
    return Outcome(seconds, "server, load and recording go on", is_whole=stage.files_are_whole())


@_fault("GPU sampler killed")
async def _sampler_killed(stage: Stage) -> Outcome:
    await stage.serve()
    began = time.monotonic()
    os.kill(stage.child_of_agent("gpu_dash.gpu.sampler"), signal.SIGKILL)
    await stage.until(lambda store: store.gpu_state is not GpuSourceState.LIVE)
    seconds, said = time.monotonic() - began, stage.store.gpu_detail
    await stage.until(lambda store: store.gpu_state is GpuSourceState.LIVE)
    return Outcome(seconds, said, is_whole=stage.files_are_whole())


@_fault("GPU sampler hangs (SIGSTOP, as in a driver call)")
async def _sampler_frozen(stage: Stage) -> Outcome:
    await stage.serve()
    began = time.monotonic()
    os.kill(stage.child_of_agent("gpu_dash.gpu.sampler"), signal.SIGSTOP)
    await stage.until(lambda store: store.gpu_state is GpuSourceState.STALE)
    seconds, said = time.monotonic() - began, stage.store.gpu_detail
    await stage.until(lambda store: store.gpu_state is GpuSourceState.LIVE)
    return Outcome(seconds, said, is_whole=stage.files_are_whole())


@_fault("load worker killed")
async def _load_killed(stage: Stage) -> Outcome:
    await stage.serve()
    pid = stage.child_of_agent("gpu_dash.load.worker")
    before = len(stage.store.notices)
    outcome = await stage.timed(
        lambda: os.kill(pid, signal.SIGKILL),
        lambda store: len(store.notices) > before or (store.load and store.load.detail),
        lambda store: _notice(store) or (store.load.detail if store.load else ""),
    )
    outcome.is_whole = stage.store.server.state is ServerState.READY
    return outcome


@_fault("keeper killed, then the server")
async def _keeper(stage: Stage) -> Outcome:
    await stage.serve()
    os.kill(stage.keeper_pid(), signal.SIGKILL)
    outcome = await stage.timed(lambda: os.kill(stage.server_pid, signal.SIGKILL), _failed, _detail)
    outcome.is_clean, outcome.is_whole = stage.session_is_empty(), stage.files_are_whole()
    return outcome


@_fault("hang-up (SIGHUP) of the agent")
async def _hangup(stage: Stage) -> Outcome:
    await stage.serve()
    done = stage.store.requests_ok
    began = time.monotonic()
    os.kill(stage.agent_pid, signal.SIGHUP)
    try:
        await stage.until(lambda store: store.requests_ok > done + CONTINUES)
    finally:
        survived = is_running(stage.agent_pid)
    seconds = time.monotonic() - began
    return Outcome(seconds, "the agent goes on" if survived else "the agent ended")
