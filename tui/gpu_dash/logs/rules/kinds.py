"""The kinds of finding: how bad each is, and what to look at, in order.

The order of the checks is the point of a kind: the four ways to run out of memory have different
and partly opposite cures.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_dash.model.log import Severity


@dataclass(frozen=True)
class Kind:
    """One kind of finding."""

    name: str
    severity: Severity
    meaning: str
    first_check: str
    checks: tuple[str, ...] = ()
    """What to look at next, in order."""


_CRITICAL, _ERROR, _WARNING, _INFO = (
    Severity.CRITICAL,
    Severity.ERROR,
    Severity.WARNING,
    Severity.INFO,
)

_TABLE = (
    # -- NCCL and RCCL ---------------------------------------------------------------------------
    Kind(
        "nccl_timeout",
        _CRITICAL,
        "a collective did not finish in time; the rank named is one that waited",
        "temperature and throttle reasons of every GPU, slowest first; then XID in the kernel log",
        (
            "did a worker die before: its line is then the cause",
            "P2P path: `nvidia-smi topo -m`, IOMMU/ACS; NCCL_P2P_DISABLE=1 as a test",
            "a first-time compilation or a long load: --distributed-timeout-seconds",
        ),
    ),
    Kind(
        "nccl_cuda_error",
        _CRITICAL,
        "a CUDA call of NCCL failed",
        "rerun with NCCL_DEBUG=INFO and read the first NCCL WARN line",
        (
            "driver against the CUDA version NCCL was built for",
            "free memory of that GPU",
            "all GPUs visible in the container; NCCL_NVLS_ENABLE=0 as a test",
        ),
    ),
    Kind(
        "nccl_system_error",
        _CRITICAL,
        "a system call of NCCL failed",
        "the first NCCL WARN line with NCCL_DEBUG=INFO, on every node",
        (
            "size of /dev/shm",
            "NCCL_SOCKET_IFNAME names the right interface",
            "the same NCCL version on all nodes",
        ),
    ),
    Kind(
        "nccl_shm",
        _CRITICAL,
        "shared memory is too small or not shared",
        "size of /dev/shm: docker --shm-size or --ipc=host; 'no space left' is not the disk here",
        ("left-over `nccl-*` and `psm_*` segments in /dev/shm", "memory limit of the container"),
    ),
    Kind(
        "nccl_net",
        _CRITICAL,
        "a peer or the way to it does not answer",
        "is the peer's process alive; then route and firewall to its address",
        (
            "NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME, VLLM_HOST_IP name the right interface",
            "InfiniBand: `ibstat`, `ib_write_bw`, the GID index",
        ),
    ),
    Kind(
        "nccl_internal",
        _CRITICAL,
        "NCCL failed inside, or was used in a way that it does not allow",
        "GPU visibility inside the container",
        ("topology (NCCL_DEBUG=INFO)", "NCCL version"),
    ),
    Kind(
        "p2p_allreduce",
        _CRITICAL,
        "the custom all-reduce or peer-to-peer access between GPUs failed",
        "retry with --disable-custom-all-reduce (NCCL carries the all-reduce), then P2P topology",
        (
            "NCCL_P2P_DISABLE=1",
            "IOMMU and ACS off; `iommu=pt` on AMD",
            "--enforce-eager",
        ),
    ),
    Kind(
        "allreduce_fallback",
        _WARNING,
        "a slower all-reduce is used",
        "P2P between the GPUs (`nvidia-smi topo -m`, IOMMU/ACS), if throughput matters",
    ),
    # -- GPU and kernel --------------------------------------------------------------------------
    Kind(
        "gpu_lost",
        _CRITICAL,
        "the GPU no longer answers the host",
        "temperature and power just before; power cables, seat, riser; then reset or reboot",
        ("XID of that GPU in the kernel log", "power supply: transients", "driver version"),
    ),
    Kind(
        "gpu_xid_app",
        _ERROR,
        "a process made the GPU fault",
        "the worker's CUDA error in the log; hardware only if it recurs on one GPU",
        ("the same XID again on this GPU and no other", "another attention backend"),
    ),
    Kind(
        "gpu_ecc_nvlink",
        _CRITICAL,
        "a memory or link error that hardware reported",
        "drain the GPU; ECC counters and row remapping (`nvidia-smi -q -d ECC,ROW_REMAPPER`)",
        ("NVLink error counters (`nvidia-smi nvlink -e`)", "reset the GPU", "fabric manager's log"),
    ),
    Kind(
        "thermal",
        _ERROR,
        "the GPU slows down because it is hot",
        "air flow and fan of this GPU, dust, the neighbouring card",
        ("lower the power limit until it is cool",),
    ),
    Kind(
        "power",
        _ERROR,
        "the power supply or its limit slows the GPU down",
        "power supply, cables and the chassis' power cap",
        ("the power limit against the card's default",),
    ),
    Kind(
        "gpu_reset_amd",
        _CRITICAL,
        "the GPU hung and was reset",
        "restart every process on the card; temperature and power before the event",
        ("amdgpu in the kernel log", "firmware and ROCm version", "power supply"),
    ),
    # -- memory ----------------------------------------------------------------------------------
    Kind(
        "oom_load",
        _CRITICAL,
        "the weights do not fit",
        "larger --tensor-parallel-size or a quantized model; max-num-seqs cannot help here",
        ("another process on the GPU (`nvidia-smi`)",),
    ),
    Kind(
        "oom_kv_none",
        _CRITICAL,
        "weights and activations leave nothing for the KV cache",
        "raise --gpu-memory-utilization",
        (
            "lower --max-num-seqs and --max-num-batched-tokens",
            "lower --max-model-len",
            "more GPUs",
        ),
    ),
    Kind(
        "kv_too_small",
        _CRITICAL,
        "not even one sequence of the longest length fits in the KV cache",
        "lower --max-model-len to the number in the message",
        ("raise --gpu-memory-utilization",),
    ),
    Kind(
        "oom_warmup_capture",
        _CRITICAL,
        "out of memory in warm-up or graph capture, after the weights had fitted",
        "lower --max-num-seqs, then --gpu-memory-utilization (graphs live outside its part)",
        ("fewer --cudagraph-capture-sizes", "--enforce-eager"),
    ),
    Kind(
        "oom_runtime",
        _CRITICAL,
        "out of memory while serving",
        "lower --max-num-seqs",
        (
            "lower --max-model-len",
            "lower --gpu-memory-utilization",
            "orphaned processes that still hold memory (`nvidia-smi`)",
        ),
    ),
    Kind(
        "mem_util_startup",
        _CRITICAL,
        "less memory was free than was asked for, or it changed while it was measured",
        "another process on the GPU: end it; if there is none, lower --gpu-memory-utilization",
    ),
    Kind(
        "host_oom",
        _CRITICAL,
        "the host ran out of memory, or something killed the process",
        "host memory: OOM kill in the kernel log (`dmesg`), the container's limit",
        ("loader and pinned memory: fewer loader threads", "who sends SIGKILL, if not the kernel"),
    ),
    Kind(
        "kv_preempt",
        _WARNING,
        "the KV cache is full; requests are put back and computed again",
        "less load or a lower --max-num-seqs",
        ("raise --gpu-memory-utilization", "lower --max-model-len", "more GPUs"),
    ),
    # -- CUDA, HIP, set-up -----------------------------------------------------------------------
    Kind(
        "illegal_access",
        _CRITICAL,
        "a kernel touched what it may not, or the GPU misread it",
        "XID 13 or 31 in the kernel log; CUDA_LAUNCH_BLOCKING=1 to see the kernel",
        (
            "--enforce-eager, another attention backend, --disable-custom-all-reduce",
            "another version of vLLM",
            "the same GPU each time: faulty or overclocked card",
        ),
    ),
    Kind(
        "driver_mismatch",
        _CRITICAL,
        "driver, CUDA build and card do not go together",
        "the driver's CUDA version (`nvidia-smi`) against the one the wheel was built for",
        ("compute capability of the card against the build's list", "an older build"),
    ),
    Kind(
        "fabric_manager",
        _CRITICAL,
        "the NVSwitch fabric is not up",
        "nvidia-fabricmanager service runs and is of the driver's version",
    ),
    Kind(
        "device_visibility",
        _CRITICAL,
        "no GPU, or too few, or the same one twice, can be seen",
        "`nvidia-smi` inside the container; CUDA_VISIBLE_DEVICES / HIP_VISIBLE_DEVICES",
        ("number of GPUs against tensor x pipeline parallel size",),
    ),
    Kind(
        "hip_no_binary",
        _CRITICAL,
        "no code was built for this AMD architecture",
        "the card's gfx name; then HSA_OVERRIDE_GFX_VERSION: unset it unless it is of that family",
        ("architectures of the build (PYTORCH_ROCM_ARCH)",),
    ),
    Kind(
        "hip_error",
        _CRITICAL,
        "the HIP or HSA runtime failed",
        "amdgpu in the kernel log; then AMD_SERIALIZE_KERNEL=3",
        ("another attention backend", "ROCm version against driver version"),
    ),
    Kind(
        "flashinfer",
        _CRITICAL,
        "FlashInfer is missing, cannot be built, or does not know the card",
        "VLLM_USE_FLASHINFER_SAMPLER=0, or install nvcc (the CUDA toolkit) for its build",
    ),
    Kind(
        "quant_unsupported",
        _CRITICAL,
        "the card or platform cannot run this quantization",
        "a checkpoint with another quantization, or a newer card",
    ),
    Kind(
        "dtype_unsupported",
        _CRITICAL,
        "the card cannot compute in this type",
        "start with --dtype half",
    ),
    Kind(
        "tp_size",
        _CRITICAL,
        "the model cannot be divided by this tensor parallel size",
        "a --tensor-parallel-size that divides heads and quantization blocks",
        ("--pipeline-parallel-size instead", "--enable-expert-parallel for experts"),
    ),
    Kind(
        "bad_flag",
        _CRITICAL,
        "a flag that this version does not know or take",
        "`vllm serve --help=all` of the installed version",
    ),
    Kind(
        "port_in_use",
        _CRITICAL,
        "the port is taken",
        "who holds the port (`ss -ltnp`), often the previous vLLM: stop it or change --port",
    ),
    Kind(
        "model_config",
        _CRITICAL,
        "the model cannot be found, read or loaded as it is",
        "model name or path: spelling, mounted folder, offline mode, token for gated models",
    ),
    Kind(
        "missing_module",
        _CRITICAL,
        "a Python module or shared library is missing or of the wrong version",
        "the module that the line names, in the server's environment and not in yours",
        ("the version that the installed vLLM pins",),
    ),
    # -- engine and waiting ----------------------------------------------------------------------
    Kind(
        "engine_dead",
        _CRITICAL,
        "the engine is gone; the cause is in an earlier line",
        "the first ERROR of a Worker or EngineCore process",
        ("exit code of the process", "kernel log: OOM kill, XID"),
    ),
    Kind(
        "worker_died",
        _CRITICAL,
        "a worker process ended without saying why",
        "kernel log at that second (OOM kill, segfault, XID), then the GPU of that rank",
        ("exit code of the process",),
    ),
    Kind(
        "stall",
        _WARNING,
        "a process waits for another one for a minute or more",
        "is one GPU at 100 % and the others idle? temperature, then P2P",
        ("XID in the kernel log", "`py-spy dump` of the workers"),
    ),
    Kind(
        "python_error",
        _ERROR,
        "an error of no kind known here",
        "the traceback above the line",
    ),
    # -- the calling side ------------------------------------------------------------------------
    Kind(
        "client_auth",
        _WARNING,
        "a caller's key was refused",
        "API key of the caller against --api-key / VLLM_API_KEY",
    ),
    Kind(
        "client_model",
        _WARNING,
        "a caller asked for a model that is not served",
        "model name of the caller against GET /v1/models (--served-model-name)",
    ),
    Kind(
        "client_url",
        _WARNING,
        "a caller used a path that does not exist",
        "base URL of the caller: it ends in exactly one /v1",
    ),
    Kind(
        "client_body",
        _WARNING,
        "a caller got no completion: a proxy in between, or an error inside a reply",
        "ask the server without the proxy: is it up on that port (loading, or dead)?",
        ("the proxy's upstream address and base URL",),
    ),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in _TABLE}
"""Every kind by its name."""

CALLER_KINDS = frozenset(name for name in KINDS if name.startswith("client_"))
"""Kinds about the calling side: the server is well."""
