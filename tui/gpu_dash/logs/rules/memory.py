"""Memory of the GPU and of the host. The kind decides whether utilization goes up or down."""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Case, Rule, Weight, When
from gpu_dash.logs.rules.voice import Voice, voices
from gpu_dash.logs.stage import Stage
from gpu_dash.model.log import Severity

_OUT = (
    "out of memory",
    "OutOfMemoryError",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "hipErrorOutOfMemory",
    "cudaErrorMemoryAllocation",
)
_ON_GPU = (
    r"(?:CUDA|HIP|XPU|GPU)(?: error:)? out of memory|CUDA_ERROR_OUT_OF_MEMORY|OutOfMemoryError"
    r"|CUBLAS_STATUS_ALLOC_FAILED|hipErrorOutOfMemory|cudaErrorMemoryAllocation"
    r"|(?:CUDA|HIP) driver error: out of memory"
)
_WHICH = r"GPU (?P<gpu>\d+)(?: has a total capacity|;)"
_CARD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB."
_WORKER = "(Worker_TP2 pid=99) ERROR 04-09 20:31:10 [multiproc_executor.py:949] "

RULES = (
    Rule(
        "host_oom",
        (
            "node running low on memory",
            "killed by the OOM killer",
            "OOMKilled",
            "Failed with result 'oom-kill'",
            "code=killed, status=9/KILL",
            "with exit code 137",
            "exited with code 137",
        ),
        weight=Weight.DETAIL,
        voices=voices(Voice.RAW, Voice.FAILURE, Voice.WARNING),
        matches=(
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on "
            "memory.",
            "May 18 19:02:39 host-a systemd[1]: vllm.service: A process of this unit has been "
            "killed by the OOM killer.",
            "      Reason:       OOMKilled",
            "command terminated with exit code 137",
        ),
        rejects=(
            "May 18 19:02:39 host-a systemd[1]: vllm.service: Deactivated successfully.",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB.",
        ),
    ),
    Rule(
        "mem_util_startup",
        (
            "is less than desired GPU memory utilization",
            "is less than desired CPU memory utilization",
            "is less than requested memory for kv",
            "is less than the engine's budget",
            "exceed the desired GPU memory utilization",
        ),
        values=r"(?:cuda:(?P<gpu>\d+) )?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\)",
        first_check="{free} of {total} GiB are free: end the other process on that GPU; if there "
        "is none, lower --gpu-memory-utilization",
        matches=(
            "ValueError: Free memory on device cuda:0 (71.8/79.1 GiB) on startup is less than "
            "desired GPU memory utilization (0.92, 72.77 GiB). Decrease GPU memory utilization or "
            "reduce GPU memory used by other processes.",
        ),
        rejects=("(Worker pid=4) INFO 04-09 20:31:10 [gpu_worker.py:772] Available KV cache",),
    ),
    Rule(
        "mem_util_startup",
        ("Error in memory profiling",),
        severity=Severity.ERROR,
        first_check="wait until the other process has left the GPU, then start again",
        matches=(
            "AssertionError: Error in memory profiling. Initial free memory 82.94 GiB, current "
            "free memory 90.17 GiB.",
        ),
        rejects=("DEBUG 04-09 20:31:10 [gpu_worker.py:300] Memory profiling takes 4.1 seconds.",),
    ),
    Rule(
        "oom_kv_none",
        ("No available memory for the cache blocks", "Cannot auto-fit max_model_len"),
        matches=(
            "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve "
            "even a single token. Try increasing `gpu_memory_utilization`.",
            "ValueError: No available memory for the cache blocks. Try increasing "
            "`gpu_memory_utilization` when initializing the engine.",
        ),
        rejects=("INFO 11-30 10:14:55 [gpu_worker.py:772] Available KV cache memory: 61.03 GiB",),
    ),
    Rule(
        "kv_too_small",
        (
            "that can be stored in KV cache",
            "To serve at least one request with the model",
            "KV cache is needed, which is larger than the available KV cache memory",
        ),
        cases=(
            Case(
                r"maximum model length is (?P<length>\d+)",
                "set --max-model-len to {length} or less, or raise --gpu-memory-utilization",
            ),
            Case(
                r"stored in KV cache \((?P<length>\d+)\)",
                "set --max-model-len to {length} or less, or raise --gpu-memory-utilization",
            ),
        ),
        matches=(
            "ValueError: The model's max seq len (8192) is larger than the maximum number of "
            "tokens that can be stored in KV cache (2400).",
            "ValueError: To serve at least one request with the models's max seq len (131072), "
            "(4.11 GiB KV cache is needed, which is larger than the available KV cache memory "
            "(4.0 GiB).",
        ),
        rejects=("(EngineCore pid=8) INFO 11-30 19:01:02 [kv_cache_utils.py:2327] GPU KV cache",),
    ),
    Rule(
        "oom_warmup_capture",
        ("occurred when warming up", "out of memory during cudagraph capture"),
        matches=(
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy "
            "requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization`.",
        ),
        rejects=("INFO 01-02 03:04:05 [gpu_worker.py:1] CUDA graph memory profiling is enabled",),
    ),
    Rule(
        "oom_warmup_capture",
        _OUT,
        pattern=_ON_GPU,
        values=_WHICH,
        when=When(
            frames=r"capture_model|compile_or_warm_up_model|capture_(?:begin|end)"
            r"|torch\.cuda\.graph\(|_dummy_(?:sampler_|pooler_)?run|profile_run"
            r"|determine_(?:available_memory|num_available_blocks)|warm_?up",
            stages=frozenset({Stage.PROFILING, Stage.COMPILING, Stage.CAPTURING}),
        ),
        matches=(f"{_WORKER}    self.model_runner.capture_model()\n{_WORKER}{_CARD}",),
        rejects=(f"{_WORKER}    self.sample_tokens()\n{_WORKER}{_CARD}",),
    ),
    Rule(
        "oom_load",
        _OUT,
        pattern=_ON_GPU,
        values=_WHICH,
        when=When(
            text=r"(?i)\b(?:creat|load|initiali)\w* .*(?:weight|model)",
            frames=r"load_model|create_weights|initialize_model|load_weights|weight_utils"
            r"|model_loader|process_weights_after_loading|_initialize_model",
            stages=frozenset({Stage.STARTING, Stage.LOADING}),
        ),
        matches=(
            f"{_WORKER}    self.model_runner.load_model()\n{_WORKER}{_CARD}",
            "(EngineCore_DP0 pid=1247) ERROR 11-05 12:19:32 [linear.py:210] Failed to create "
            "unquantized linear weights: CUDA out of memory. Tried to allocate 896.00 MiB.",
        ),
        rejects=(f"{_WORKER}    self.execute_model()\n{_WORKER}{_CARD}",),
    ),
    Rule(
        "oom_runtime",
        _OUT,
        pattern=_ON_GPU,
        values=_WHICH,
        matches=(f"{_WORKER}    self.execute_model()\n{_WORKER}{_CARD}", _CARD),
        rejects=(
            "INFO 03-20 16:01:38 model_runner.py:1434] Capturing cudagraphs for decoding. If "
            "out-of-memory error occurs during cudagraph capture, consider decreasing "
            "`gpu_memory_utilization`.",
            "[881221.402211] Out of memory: Killed process 103125 (pt_main_thread)",
        ),
    ),
    # -- the host --------------------------------------------------------------------------------
    Rule(
        "host_oom",
        ("Out of memory: Killed process", "out of memory: Killed process"),
        pattern=r"Killed process (?P<pid>\d+) \((?P<name>(?:VLLM|vllm|python|pt_main|ray)[^)]*)\)",
        weight=Weight.DETAIL,
        voices=voices(Voice.KERNEL, Voice.RAW),
        matches=(
            "[881221.402211] Out of memory: Killed process 103125 (pt_main_thread) "
            "total-vm:161840912kB",
            "[81.4] Memory cgroup out of memory: Killed process 77 (VLLM::EngineCor) total-vm:1kB",
        ),
        rejects=("[881221.4] Out of memory: Killed process 51 (chrome) total-vm:1kB",),
    ),
    Rule(
        "host_oom",
        ("oom-kill:",),
        pattern=r"task=(?:VLLM|vllm|python|pt_main|ray)[^,]*,pid=(?P<pid>\d+)",
        weight=Weight.UNEXPLAINED,
        voices=voices(Voice.KERNEL, Voice.RAW),
        matches=(
            "[81.4] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg=/x,"
            "task=VLLM::Worker_TP,pid=77,uid=0",
        ),
        rejects=("[81.4] oom-kill:constraint=CONSTRAINT_NONE,task=chrome,pid=77,uid=0",),
    ),
    Rule(
        "host_oom",
        ("exit code: -9", "exit code: 137"),
        pattern=r"died.*exit code: (?:-9|137)\b",
        unless="client",
        values=r"VllmWorker-(?P<rank>\d+)|pid (?P<pid>\d+) died",
        weight=Weight.UNEXPLAINED,
        first_check="killed by SIGKILL: OOM kill in the kernel log, the container's limit",
        matches=(
            "(EngineCore pid=20256) ERROR 11-30 18:50:22 [multiproc_executor.py:315] Worker proc "
            "VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.",
        ),
        rejects=(
            "ERROR 10-30 11:56:48 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 198 "
            "died, exit code: -6",
        ),
    ),
    Rule(
        "host_oom",
        (
            "Killed",
            "memory pressure",
            "can't allocate memory",
            "bad_alloc",
            "Cannot allocate",
            "MemoryError",
            "_ArrayMemoryError",
        ),
        pattern=r"^(?:\S+: line \d+: +\d+ )?Killed(?:$| {2}| \()|due to memory pressure"
        r"|^(?:[\w]+\.)*(?:_Array)?MemoryError\b"
        r"|DefaultCPUAllocator: can't allocate memory|std::bad_alloc|Cannot allocate memory",
        weight=Weight.UNEXPLAINED,
        matches=(
            "deploy.sh: line 17: 11440 Killed                  vllm serve acme/model-7b",
            "OSError: [Errno 12] Cannot allocate memory",
            "MemoryError",
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 4.00 GiB for an array",
            "terminate called after throwing an instance of 'std::bad_alloc'",
        ),
        rejects=(
            "INFO 10-30 11:56:48 multiproc_worker_utils.py:123] Killing local vLLM worker "
            "processes",
        ),
    ),
    # -- the KV cache while serving --------------------------------------------------------------
    Rule(
        "kv_preempt",
        ("is preempted by", "is preempted because", "Swapped: "),
        pattern=r"is preempted|Swapped: [1-9]",
        weight=Weight.CONDITION,
        voices=voices(Voice.WARNING, Voice.NOTE),
        matches=(
            "WARNING 04-22 18:37:21 scheduler.py:1057] Sequence group 0 is preempted by "
            "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.",
            "INFO 04-22 18:37:21 metrics.py:349] Avg prompt throughput: 1.0 tokens/s, Running: 2 "
            "reqs, Swapped: 12 reqs, Pending: 7 reqs, GPU KV cache usage: 99.8%",
        ),
        rejects=("INFO 04-22 18:37:21 scheduler.py:1057] Chunked prefill is enabled",),
    ),
    Rule(
        "kv_preempt",
        ("Preemptions: ",),
        pattern=r"Preemptions: [1-9]",
        weight=Weight.CONDITION,
        voices=voices(Voice.NOTE),
        matches=(
            "(APIServer pid=700) INFO 11-30 10:20:10 [loggers.py:335] Engine 000: Avg prompt "
            "throughput: 812.4 tokens/s, Running: 48 reqs, Waiting: 131 reqs, Preemptions: 37",
        ),
        rejects=(
            "(APIServer pid=700) INFO 11-30 10:20:10 [loggers.py:335] Engine 000: Avg prompt "
            "throughput: 812.4 tokens/s, Running: 48 reqs, Waiting: 0 reqs, Preemptions: 0",
        ),
    ),
)
