"""The ways in which the stand-in can fail, each with the log lines that vLLM leaves.

The cause comes first and once; what follows from it comes after, once for every open request.
The texts follow real captures and vLLM's own message strings.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpu_dash.demo.log import API_SERVER, ENGINE_CORE, ServerLog, worker
from gpu_dash.demo.rack import pci_bus_id
from gpu_dash.demo.simulation import ENGINE_DEAD

_SITE = "/usr/local/lib/python3.12/dist-packages/vllm"
_WATCHDOG_MS = 600_000


class Fault(StrEnum):
    """What can be asked for by ``POST /sim/fault`` and ``--sim-fault``."""

    CRASH = "crash"
    """A worker is killed and the server goes down with it at once, exit code 1."""
    FREEZE = "freeze"
    """One worker hangs: no token any more, ``/health`` still says 200, nothing in the log."""
    UNFREEZE = "unfreeze"
    """The worker that hung goes on."""
    NCCL_TIMEOUT = "nccl_timeout"
    """A collective times out; the engine dies and the server leaves with exit code 0, as
    vLLM does after the death of its engine."""
    LOSE_GPU = "lose_gpu"
    """A card falls off the bus (Xid 79); the engine dies, exit code 0."""


@dataclass(frozen=True, slots=True)
class Death:
    """How the server ends after its engine died."""

    exit_code: int
    grace_s: float
    """How long it still answers: ``/health`` with 503, generations with 500."""


KILLED = Death(exit_code=1, grace_s=0.3)
ENGINE_DIED = Death(exit_code=0, grace_s=3.0)
"""vLLM's API server looks every few seconds whether its engine lives, and leaves with 0."""


def log_worker_killed(log: ServerLog, rank: int, workers: int) -> None:
    """A worker is gone without a word of its own: SIGKILL, as by the kernel's OOM killer."""
    _log_worker_died(log, rank, workers, exit_code=-9)
    _log_engine_error(log, "RuntimeError: Executor failed.")


def log_engine_core_exited(log: ServerLog) -> None:
    """The engine's own process is gone."""
    text = "[shutdown] MPClient: engine core exited unexpectedly; starting cleanup"
    log.record(API_SERVER, "WARNING", "core_client.py:817", text)


def log_nccl_timeout(log: ServerLog, stuck_rank: int, workers: int) -> None:
    """The watchdog of every rank that waited for ``stuck_rank`` gives up."""
    waiting = [rank for rank in range(workers) if rank != stuck_rank] or [stuck_rank]
    stamp = time.strftime("%m%d %H:%M:%S")
    for rank in waiting:
        log.raw_error(
            f"[rank{rank}]:[E{stamp}.{104_233_871 + rank} ProcessGroupNCCL.cpp:688] "
            f"[Rank {rank}] Watchdog caught collective operation timeout: "
            f"WorkNCCL(SeqNum=77120, OpType=ALLREDUCE, NumelIn=4194304, NumelOut=4194304, "
            f"Timeout(ms)={_WATCHDOG_MS}) ran for {_WATCHDOG_MS + 11} milliseconds before "
            "timing out."
        )
    _log_worker_died(log, waiting[0], workers, exit_code=-6)
    _log_engine_error(log, "RuntimeError: Executor failed.")


def log_gpu_lost(log: ServerLog, gpu: int, workers: int) -> None:
    """A card is gone: the kernel's line, and the error of the worker that used it.

    A real server's log does not have the kernel's line; it stands here because a simulated card
    has no kernel to speak of it.
    """
    address = pci_bus_id(gpu).removesuffix(".0")
    log.raw_error(
        f"[{time.monotonic():13.6f}] NVRM: Xid (PCI:{address}): 79, pid='<unknown>', "
        "name=<unknown>, GPU has fallen off the bus."
    )
    cause = "CUDA error: unspecified launch failure"
    log.record(
        worker(gpu, workers),
        "ERROR",
        "multiproc_executor.py:671",
        "WorkerProc hit an exception.",
        "Traceback (most recent call last):",
        f'  File "{_SITE}/v1/executor/multiproc_executor.py", line 666, in worker_busy_loop',
        "    output = func(*args, **kwargs)",
        f'  File "{_SITE}/v1/worker/gpu_model_runner.py", line 2262, in execute_model',
        f"torch.AcceleratorError: {cause}",
        "CUDA kernel errors might be asynchronously reported at some other API call, so the "
        "stacktrace below might be incorrect.",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    )
    _log_engine_error(
        log,
        f"RuntimeError: Worker failed with error '{cause}', please check the stack trace above "
        "for the root cause",
    )


def log_follow_on(log: ServerLog, open_requests: int) -> None:
    """What the API server says of a dead engine: once, and once for every open request."""
    output = _error_lines(
        "AsyncLLM output_handler failed.",
        (("v1/engine/async_llm.py", 849, "output_handler"),),
        f"vllm.v1.engine.exceptions.EngineDeadError: {ENGINE_DEAD}",
    )
    log.record(API_SERVER, "ERROR", "async_llm.py:906", *output)
    request = _error_lines(
        "Error in completion stream generator.",
        (
            ("entrypoints/openai/completion/serving.py", 306, "completion_stream_generator"),
            ("utils/async_utils.py", 104, "merge_async_iterators"),
            ("v1/engine/async_llm.py", 767, "generate"),
            ("v1/engine/output_processor.py", 92, "get"),
        ),
        f"vllm.v1.engine.exceptions.EngineDeadError: {ENGINE_DEAD}",
    )
    text = log.format(API_SERVER, "ERROR", "serving.py:500", *request)
    log.raw_lines([text] * open_requests)


def _log_worker_died(log: ServerLog, rank: int, workers: int, exit_code: int) -> None:
    log.record(
        ENGINE_CORE,
        "ERROR",
        "multiproc_executor.py:315",
        f"Worker proc VllmWorker-{rank} died unexpectedly (exit code: {exit_code}), "
        "shutting down executor.",
    )
    text = f"[shutdown] Executor: waiting for worker exit count={workers}"
    log.record(ENGINE_CORE, "INFO", "multiproc_executor.py:479", text)


def _log_engine_error(log: ServerLog, error: str) -> None:
    lines = _error_lines(
        "EngineCore encountered a fatal error.",
        (
            ("v1/engine/core.py", 1496, "run_engine_core"),
            ("v1/engine/core.py", 1555, "run_busy_loop"),
            ("v1/engine/core.py", 1606, "_process_engine_step"),
            ("v1/executor/multiproc_executor.py", 359, "collective_rpc"),
        ),
        error,
    )
    log.record(ENGINE_CORE, "ERROR", "core.py:1512", *lines)


def _error_lines(head: str, frames: Sequence[tuple[str, int, str]], error: str) -> tuple[str, ...]:
    trace = (f'  File "{_SITE}/{file}", line {line}, in {name}' for file, line, name in frames)
    return (head, "Traceback (most recent call last):", *trace, error)
