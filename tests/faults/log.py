"""Something happens to the server's log."""

from __future__ import annotations

import os

from gpu_dash.model.server import ServerState
from tests.faults.registry import fault, newest_notice
from tests.faults.stage import Outcome, Stage
from tests.unit.logs.saying import capture

WORKER = "(Worker_TP1 pid=7) ERROR 11-30 10:00:00 [a.py:1] "


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
        lambda store: f"{newest_notice(store)}; then: {store.findings[-1].kind}",
    )
    assert stage.store.log_lines_total > lines
    outcome.is_whole = stage.store.server.state is ServerState.READY
    return outcome


@fault("log truncated")
async def _log_cut(stage: Stage) -> Outcome:
    return await _log_fault(stage, "truncated")


@fault("log deleted, and written anew")
async def _log_deleted(stage: Stage) -> Outcome:
    return await _log_fault(stage, "deleted")


@fault("log rotated")
async def _log_rotated(stage: Stage) -> Outcome:
    return await _log_fault(stage, "renamed")


@fault("log burst: 19,829 lines at once, the cause in line 360")
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
