"""vLLM's own processes: who died, who waits for whom, and who only reports that."""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Case, Rule, Weight
from gpu_dash.logs.rules.voice import Voice, voices
from gpu_dash.logs.stage import Stage
from gpu_dash.model.log import Severity

_ENGINE = "(EngineCore pid=5017) ERROR 11-30 18:51:57 [multiproc_executor.py:284] "

IGNORED = (
    Rule(
        "",
        ("Dumping input data for", "Dumping scheduler output", "Dumping scheduler stats"),
        matches=(
            "(EngineCore pid=5017) ERROR 11-30 18:51:57 [dump_input.py:72] Dumping input data for "
            "V1 LLM engine (v0.26.0) with config: model='/models/qwen3-32b'",
        ),
    ),
    Rule(
        # A caller that asked for too much; older versions print a traceback for each.
        "",
        ("maximum context length is", "is longer than the maximum model length"),
        matches=(
            "ValueError: This model's maximum context length is 32768 tokens. However, you "
            "requested 40960 tokens.",
        ),
    ),
    Rule(
        # Questions about the host that may well be answered with no.
        "",
        (
            "NVLink detection failed",
            "NVLink detection not possible",
            "XGMI detection failed",
            "Error ignored in is_in_the_same_node",
            "RequestValidationError caught",
            "HTTPException caught",
        ),
        matches=(
            "(EngineCore pid=5) ERROR 11-30 10:13:02 [cuda.py:600] NVLink detection failed. This "
            "is normal if your machine has no NVLink equipped.",
        ),
    ),
    Rule(
        # Tuning tries variants of a kernel that the card cannot run, and leaves them out.
        "",
        ("Runtime error during autotuning", "No valid triton configs", "Ignoring this choice"),
        matches=(
            "E1130 10:13:02.123000 77 torch/_inductor/select_algorithm.py:2134] [0/0] No valid "
            "triton configs. OutOfMemoryError: out of resource: triton_mm Required: 147456 "
            "Hardware limit:101376",
        ),
    ),
    Rule(
        # What torch does after it said what happened.
        "",
        (
            "preparing to dump debug info",
            "Terminating the process after attempting to dump debug info",
            "Could not acquire GIL",
            "First PG on this rank to signal",
            "Stack trace of the failed collective",
        ),
        matches=(
            "[rank0]:[E429 13:55:49.384620373 ProcessGroupNCCL.cpp:1533] [PG ID 0 PG GUID 0 Rank "
            "0] ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1",
        ),
    ),
    Rule(
        # How every process that is asked to stop leaves its event loop.
        "",
        ("KeyboardInterrupt", "SystemExit", "CancelledError", "GeneratorExit"),
        pattern=r"^(?:[\w.]+\.)?(?:KeyboardInterrupt|SystemExit|CancelledError|GeneratorExit)\b",
        matches=("KeyboardInterrupt: terminated", "asyncio.exceptions.CancelledError"),
    ),
)
"""Lines that look like a failure and are none."""

CONSEQUENCES = (
    Rule(
        "engine_dead",
        (
            "EngineDeadError",
            "MQEngineDeadError",
            "AsyncEngineDeadError",
            "EngineCore encountered an issue",
            "Engine core initialization failed",
            "WorkerProc initialization failed due to an exception in a background process",
            "Worker failed with error",
            "Executor failed.",
            "Got fatal signal from worker processes",
            "Background loop has errored already",
            "Background loop is not running",
            "Engine loop is not running",
            "Engine process failed to start",
            "engine core exited unexpectedly",
            "died unexpectedly, shutting down client",
            "Failed core proc(s)",
            "is already dead, terminating server process",
        ),
        weight=Weight.CONSEQUENCE,
        voices=voices(Voice.RAW, Voice.FAILURE, Voice.WARNING),
        matches=(
            "(APIServer pid=700) ERROR 09-15 08:00:02 [serving.py:908] vllm.v1.engine.exceptions."
            "EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the "
            "root cause.",
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
            "proc(s): {'EngineCore': 1}",
            "(EngineCore pid=71) ERROR 04-09 20:31:12 [core.py:1110] RuntimeError: Worker failed "
            "with error 'CUDA out of memory.', please check the stack trace above for the root "
            "cause",
            "CRITICAL 09-07 01:49:38 launcher.py:98] AsyncLLMEngine is already dead, terminating "
            "server process",
            "(APIServer pid=22191) WARNING 11-30 18:54:10 [core_client.py:817] [shutdown] "
            "MPClient: engine core exited unexpectedly; starting cleanup",
        ),
        rejects=(
            "INFO 05-12 19:01:18 [async_llm.py:324] Request chatcmpl-3d failed (engine dead).",
            "(EngineCore pid=5) INFO 11-30 11:00:03 [multiproc_executor.py:587] [shutdown] "
            "Executor: all workers exited gracefully",
        ),
    ),
    Rule(
        "engine_dead",
        ("stack trace", "root cause"),
        pattern=r"[Ss]ee (?:the )?(?:root cause|stack ?trace)|check the stack ?trace",
        weight=Weight.CONSEQUENCE,
        matches=(
            "RuntimeError: Something new failed. See stack trace for the root cause.",
            "CRITICAL 03-25 21:13:53 core_client.py:158] Shutting down. See stack trace above for "
            "root cause issue.",
        ),
        rejects=("RuntimeError: the stack is full",),
    ),
)
"""Lines that only report what another one broke. They quote it, so they are tried first."""

RULES = (
    # -- the ones that died ----------------------------------------------------------------------
    Rule(
        "worker_died",
        ("died",),
        pattern=r"Worker ?(?:[Pp]roc|process|VllmWorker)\S* .*\bdied\b|ActorDiedError"
        r"|[Aa]ctor died",
        values=r"(?:VllmWorker-|Proc rank=)(?P<rank>\d+)|pid (?P<pid>\d+) died",
        weight=Weight.UNEXPLAINED,
        cases=(
            Case(
                r"exit code: -11\b",
                "segmentation fault: the Python stack above, if any; kernel log; then the GPU of "
                "that rank",
            ),
            Case(
                r"exit code: -6\b",
                "aborted: what torch or NCCL said just before; then the GPU of that rank",
            ),
            Case(r"exit code: -15\b", "ended by SIGTERM: who stopped it?", Severity.WARNING),
        ),
        matches=(
            f"{_ENGINE}Worker proc VllmWorker-1 died unexpectedly (exit code: None), shutting down "
            "executor.",
            "ERROR 10-30 11:56:48 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 198 "
            "died, exit code: -6",
            "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this "
            "task.",
            "(EngineCore pid=5) ERROR 11-30 10:13:02 [ray_executor_v2.py:3] RayWorkerProc rank=3 "
            "died unexpectedly, shutting down executor.",
        ),
        rejects=(
            "ERROR 07-09 02:11:44 [core_client.py:517] Engine core proc EngineCore_0 died "
            "unexpectedly, shutting down client.",
        ),
    ),
    Rule(
        "worker_died",
        (
            "Segmentation fault",
            "Segfault encountered",
            "Fatal Python error",
            "SIGSEGV",
            "SIGABRT",
            "SIGILL",
            "core dumped",
            "worker died or was killed",
            "Illegal instruction",
            "code=dumped, status=",
        ),
        pattern=r"^(?:\S+: line \d+: +\d+ )?(?:Segmentation fault|Aborted|Illegal instruction)"
        r"(?:$| {2}| \()"
        r"|exited, code=dumped"
        r"|Segfault encountered|Fatal Python error: |\*\*\* SIG(?:SEGV|ABRT|ILL)|worker died or was"
        r"|Caught signal \d+",
        weight=Weight.UNEXPLAINED,
        matches=(
            "Fatal Python error: Segmentation fault",
            "!!!!!!! Segfault encountered !!!!!!!",
            "*** SIGABRT received at time=1739500000 on cpu 12 ***",
            "May 18 19:02:39 host-a systemd[1]: vllm.service: Main process exited, code=dumped, "
            "status=6/ABRT",
            "Aborted (core dumped)",
            "A worker died or was killed while executing a task by an unexpected system error.",
        ),
        rejects=(
            "(EngineCore pid=4) INFO 11-30 11:00:00 [core.py:1] received signal=SIGTERM",
            "Segmentation fault handler installed",
        ),
    ),
    Rule(
        # The heading of what() in the next line, which says more.
        "worker_died",
        ("terminate called after throwing", "terminate called without"),
        weight=Weight.WAITING,
        matches=("terminate called after throwing an instance of 'c10::Error'",),
        rejects=("terminate called after throwing an instance of 'std::bad_alloc'",),
    ),
    Rule(
        "worker_died",
        ("segfault at", "general protection fault", "trap invalid opcode"),
        pattern=r"^(?:traps: )?(?:VLLM|vllm|python|pt_main|ray)[^\[]*\[(?P<pid>\d+)\]:? "
        r"(?:segfault at|general protection|trap )",
        weight=Weight.DETAIL,
        voices=voices(Voice.KERNEL, Voice.RAW),
        first_check="the kernel says that the process crashed in native code: the library that "
        "the line names, its version; then the GPU of that worker",
        matches=(
            "[ 4120.5] VLLM::Worker_TP[77]: segfault at 0 ip 00007f sp 00007ffd error 4 in "
            "libtorch_cuda.so[7f+1]",
            "[ 4120.5] traps: python3[77] general protection fault ip:7f sp:7f error:0",
        ),
        rejects=("[ 4120.5] chrome[77]: segfault at 0 ip 00007f sp 00007ffd error 4",),
    ),
    # -- the ones that wait ----------------------------------------------------------------------
    Rule(
        "stall",
        (
            "RPC call to ",
            "Engine iteration timed out",
            "execute_model timed out",
            "engine core processes to start",
        ),
        pattern=r"RPC call to \w+ timed out|Engine iteration timed out|execute_model timed out"
        r"|Timed out waiting for (?:new )?engine core",
        weight=Weight.UNEXPLAINED,
        severity=Severity.CRITICAL,
        first_check="a worker hangs: which GPU is at 100 % or idle against the others; "
        "temperature, XID",
        matches=(
            "(EngineCore pid=8) ERROR 11-30 10:13:02 [core.py:1332] TimeoutError: RPC call to "
            "sample_tokens timed out.",
            "RuntimeError: Engine iteration timed out. This should never happen!",
        ),
        rejects=("(EngineCore pid=8) INFO 11-30 10:13:02 [core.py:1] RPC call to wake_up",),
    ),
    Rule(
        "stall",
        (
            "No available shared memory broadcast block found",
            "No available block found in",
        ),
        weight=Weight.WAITING,
        harmless_in=frozenset(Stage) - {Stage.UNKNOWN, Stage.SERVING},
        voices=voices(Voice.NOTE, Voice.WARNING, Voice.FAILURE),
        matches=(
            "(EngineCore_DP0 pid=310) INFO 12-15 08:31:10 [shm_broadcast.py:466] No available "
            "shared memory broadcast block found in 60 seconds.",
            "WARNING 07-21 12:00:00 shm_broadcast.py:386] No available block found in 60 second.",
        ),
        rejects=(
            "INFO 03-22 18:40:47 [shm_broadcast.py:258] vLLM message queue communication handle: "
            "Handle(local_reader_ranks=[1, 2, 3])",
        ),
    ),
)
