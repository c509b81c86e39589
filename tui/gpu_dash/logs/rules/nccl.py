"""NCCL and RCCL (which prints NCCL's names), torch's process groups."""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Case, Rule, Weight, When
from gpu_dash.logs.rules.voice import Voice, voices
from gpu_dash.model.log import Severity

_SAID = voices(Voice.RAW, Voice.FAILURE, Voice.NCCL_WARN)
_SAID_BY_RANK = r"^ *what\(\): .*?\[(?:PG [^\]]*)?Rank (?P<rank>\d+)\]"
"""torch's own prefix is missing in the ``what()`` of an exception that nobody caught."""
_SHM_FRAMES = When(
    text=r"/dev/shm|psm_", frames=r"shm_broadcast|shared_memory\.py|shm_object_storage"
)

RULES = (
    # -- shared memory ---------------------------------------------------------------------------
    Rule(
        "nccl_shm",
        (
            "Error while creating shared memory segment",
            "Error while attaching to shared memory segment",
            "unable to allocate shared memory",
            "insufficient shared memory",
            "out of shared memory",
            "Insufficient space in /dev/shm",
            "unable to open shared memory object",
            "unable to write to file </torch_",
            "unable to mmap",
            "unable to resize file </torch_",
            "Call to posix_fallocate failed",
            "ncclShmOpen",
            "ncclShmemAllocateShareableBuffer",
            "/dev/shm/nccl-",
            "Call to shm_open failed",
        ),
        unless=r"out of resource",
        weight=Weight.DETAIL,
        voices=_SAID,
        matches=(
            "Error while creating shared memory segment /dev/shm/nccl-Zb1 (size 9637888), error: "
            "No space left on device (28)",
            "host-a:88:151 [1] misc/shmutils.cc:72 NCCL WARN Error: failed to extend "
            "/dev/shm/nccl-a1 to 33030532 bytes: Call to posix_fallocate failed",
            "RuntimeError: Insufficient space in /dev/shm for shared-memory allocation: 160 MiB "
            "required, 1 MiB free. Increase /dev/shm (e.g. --shm-size or --ipc=host)",
            "RuntimeError: unable to open shared memory object </torch_1204_9> in read-write mode",
            "RuntimeError: unable to mmap 1024 bytes from file </torch_12_4>: Cannot allocate "
            "memory (12)",
            "host-a:88:151 [1] transport/shm.cc:114 NCCL WARN Call to shm_open failed : Permission "
            "denied",
        ),
        rejects=(
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: "
            "106496, Hardware limit: 101376",
            "(EngineCore pid=8) INFO 11-30 10:13:02 [shm_broadcast.py:878] No available shared "
            "memory broadcast block found in 60 seconds.",
        ),
    ),
    Rule(
        "nccl_shm",
        ("No space left on device", "No such file or directory: '/psm_"),
        when=_SHM_FRAMES,
        weight=Weight.DETAIL,
        voices=_SAID,
        matches=(
            "FileNotFoundError: [Errno 2] No such file or directory: '/psm_56ab20ea'",
            '(Worker pid=8) ERROR 11-30 10:13:02 [multiproc_executor.py:949]   File "/usr/lib/'
            'python3.12/multiprocessing/shared_memory.py", line 104, in __init__\n'
            "(Worker pid=8) ERROR 11-30 10:13:02 [multiproc_executor.py:949] OSError: [Errno 28] "
            "No space left on device",
        ),
        rejects=("OSError: [Errno 28] No space left on device: '/data/cache/model.safetensors'",),
    ),
    Rule(
        "nccl_shm",
        ("Bus error", "bus error", "SIGBUS", "exit code: -7", "Signal 7"),
        pattern=r"Fatal Python error: Bus error|^Bus error|\bSIGBUS\b|killed by signal: Bus error"
        r"|died.*exit code: -7\b|Signal 7\b",
        values=r"VllmWorker-(?P<rank>\d+)",
        matches=(
            "Fatal Python error: Bus error",
            "*** SIGBUS received at time=1739500000 on cpu 12 ***",
            "(EngineCore pid=5) ERROR 07-31 09:09:51 [multiproc_executor.py:284] Worker proc "
            "VllmWorker-1 died unexpectedly (exit code: -7), shutting down executor.",
        ),
        rejects=(
            "(EngineCore pid=5) ERROR 07-31 09:09:51 [multiproc_executor.py:284] Worker proc "
            "VllmWorker-1 died unexpectedly (exit code: None), shutting down executor.",
        ),
    ),
    # -- time-outs -------------------------------------------------------------------------------
    Rule(
        "nccl_timeout",
        (
            "collective operation timeout",
            "Heartbeat monitor timed out",
            "watchdog got stuck",
            "due to a collective timeout",
            "Timeout at NCCL work",
            "error or timeout) detected by watchdog",
            "Received a global timeout from another rank",
            "flight recorder dump signal from another rank",
            "failure detected by watchdog",
        ),
        values=_SAID_BY_RANK,
        weight=Weight.UNEXPLAINED,
        matches=(
            "[rank3]:[E1012 22:31:22.267261276 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught "
            "collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, "
            "NumelOut=1, Timeout(ms)=1800000) ran for 1800270 milliseconds before timing out.",
            "[E ProcessGroupNCCL.cpp:475] [Rank 4] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=20518, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800270 "
            "milliseconds before timing out.",
            "[rank0]:[F ProcessGroupNCCL.cpp:1169] [PG 2 Rank 0] ProcessGroupNCCL's watchdog got "
            "stuck for 600 seconds without making progress in monitoring enqueued collectives.",
            "[rank3]:[E1012 22:31:22.267 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0 Rank 3] "
            "Exception (either an error or timeout) detected by watchdog at work: 3",
            "[rank3]:[E829 14:01:28.7 ProcessGroupNCCL.cpp:682] [PG ID 0 PG GUID 0 Rank 3] "
            "Observed flight recorder dump signal from another rank via TCPStore.",
            "  what():  [PG ID 0 PG GUID 0 Rank 3] Process group watchdog thread terminated with "
            "exception: [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5",
        ),
        rejects=(
            "[rank0]:[W731 09:09:48.66 ProcessGroupNCCL.cpp:5188] Guessing device ID based on "
            "global rank. This can cause a hang if rank to GPU mapping is heterogeneous.",
        ),
    ),
    Rule(
        # Said after any failure of a collective: the cause only where nothing else is told.
        "nccl_timeout",
        (
            "Some NCCL operations have failed or timed out",
            "To avoid data inconsistency, we are taking the entire process down",
        ),
        weight=Weight.WAITING,
        matches=(
            "[rank3]:[E1012 22:31:22.267 ProcessGroupNCCL.cpp:629] [Rank 3] Some NCCL operations "
            "have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent "
            "GPU operations might run on corrupted/incomplete data.",
        ),
        rejects=(
            "[rank0]:[W731 09:09:48.66 ProcessGroupNCCL.cpp:5188] Guessing device ID based on "
            "global rank. This can cause a hang if rank to GPU mapping is heterogeneous.",
        ),
    ),
    # -- CUDA inside NCCL ------------------------------------------------------------------------
    Rule(
        "nccl_cuda_error",
        ("Cuda failure", "CUDA failure", "HIP failure"),
        pattern=r"(?:Cuda|CUDA|HIP) failure(?: \d+)? '(?P<what>[^']+)'",
        weight=Weight.DETAIL,
        voices=_SAID,
        first_check="what CUDA said: {what}; driver against the CUDA version NCCL was built for",
        cases=(
            Case(
                "no kernel image",
                "compute capability of that GPU against the architectures NCCL was built for",
            ),
            Case("out of memory", "free memory of that GPU: other processes, fewer channels"),
            Case("invalid argument", "NCCL_NVLS_ENABLE=0; then driver against NCCL's CUDA version"),
        ),
        matches=(
            "host-a:2343:2381 [7] transport/nvls.cc:157 NCCL WARN Cuda failure 1 "
            "'invalid argument'",
            "[2025-11-04 18:02:56] host-a:213:213 [1] enqueue.cc:1535 NCCL WARN Cuda failure "
            "'out of memory'",
            "Cuda failure 'peer access is not supported between these two devices'",
        ),
        rejects=("host-a:213:213 [1] NCCL INFO cudaDriverVersion 12080",),
    ),
    Rule(
        "nccl_cuda_error",
        (
            "unhandled cuda error",
            "unhandled CUDA error",
            "ncclUnhandledCudaError",
            "Failed to CUDA",
        ),
        voices=_SAID,
        matches=(
            "[rank0]: RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO "
            "for details)",
            "ncclUnhandledCudaError: Call to CUDA function failed.",
            "host-a:9:77 [1] include/alloc.h:215 NCCL WARN Failed to CUDA calloc async 608 bytes",
        ),
        rejects=("(Worker pid=9) INFO 11-30 18:50:34 [pynccl.py:113] vLLM is using nccl==2.28.9",),
    ),
    # -- wrong use, inside errors, the rest ------------------------------------------------------
    Rule(
        "device_visibility",
        ("Duplicate GPU detected",),
        weight=Weight.DETAIL,
        voices=_SAID,
        first_check="two ranks share one GPU: CUDA_VISIBLE_DEVICES, number of GPUs against "
        "tensor x data parallel size",
        matches=(
            "host-a:2292596:2292596 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 0 and "
            "rank 1 both on CUDA device 53000",
        ),
        rejects=("host-a:1:1 [0] NCCL INFO comm 0x3d rank 1 nRanks 2 nNodes 1 localRank 1",),
    ),
    Rule(
        "nccl_internal",
        (
            "NCCL error: internal error",
            "please report this issue to the NCCL developers",
            "ncclInternalError",
            "NCCL error: invalid usage",
            "ncclInvalidUsage",
            "NCCL error: invalid argument",
            "ncclInvalidArgument",
            "Mismatched collective",
            "corrupted comm object",
            "nvmlInit",
            "nvmlDevice",
            "Mismatched NCCL version",
            "/sys/",
            "Attribute ",
            "Could not find a path for pattern",
        ),
        pattern=r"NCCL error: in|developers|ncclIn|ismatched|corrupted comm|nvml|/sys/"
        r"|Attribute \S+ of node|for pattern",
        weight=Weight.UNEXPLAINED,
        voices=_SAID,
        matches=(
            "RuntimeError: NCCL error: internal error - please report this issue to the NCCL "
            "developers",
            "RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)",
            "ncclInternalError: Internal check failed.",
            "host-a:9:77 [1] misc/nvmlwrap.cc:164 NCCL WARN nvmlDeviceGetHandleByPciBusId() "
            "failed: Not Found",
            "host-a:9:77 [1] graph/xml.cc:77 NCCL WARN Could not find real path of "
            "/sys/class/pci_bus/0000:00/../../0000:00:05.0",
            "host-a:9:77 [1] init.cc:935 NCCL WARN Mismatched NCCL version detected : rank 0 "
            "version 22005 rank 1 version 21903 ",
        ),
        rejects=("host-a:213:213 [1] NCCL INFO group.cc:269 -> 3",),
    ),
    Rule(
        "nccl_system_error",
        ("unhandled system error", "ncclSystemError"),
        weight=Weight.UNEXPLAINED,
        matches=(
            "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
            "NCCLUtils.hpp:317, unhandled system error (run with NCCL_DEBUG=INFO for details), "
            "NCCL version 2.21.5",
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed "
            "or device error. ",
        ),
        rejects=("host-b:240:240 [6] NCCL INFO misc/socket.cc:570 -> 2",),
    ),
)

ANY_WARNING = (
    Rule(
        "nccl_system_error",
        ("error", "Error", "fail", "Fail", "abort", "Abort"),
        pattern=r"(?i)\b(?:error|fail(?:ed|ure)?|abort(?:ed)?)\b",
        weight=Weight.UNEXPLAINED,
        voices=voices(Voice.NCCL_WARN),
        first_check="what NCCL says here; then /dev/shm, the interface, the version on all nodes",
        matches=(
            "host-a:99:140 [2] proxy.cc:1485 NCCL WARN [Service thread] Error encountered "
            "progressing operation=Connect, res=3, closing connection",
        ),
        rejects=(
            'host-a:4:4 [0] init.cc:126 NCCL WARN Missing "HSA_FORCE_FINE_GRAIN_PCIE=1" from '
            "environment which can lead to low RCCL performance, system instablity or hang!",
        ),
    ),
    Rule(
        "",
        ("HSA_FORCE_FINE_GRAIN_PCIE", "NUMA auto balancing", "numa_balancing"),
        voices=voices(Voice.NCCL_WARN),
        matches=(
            'host-a:4:4 [0] init.cc:126 NCCL WARN Missing "HSA_FORCE_FINE_GRAIN_PCIE=1" from '
            "environment which can lead to low RCCL performance, system instablity or hang!",
            "host-a:4:4 [0] init.cc:90 NCCL WARN NUMA auto balancing enabled which can lead to "
            'variability in the RCCL performance! Disable by "sudo sysctl kernel.numa_balancing=0"',
        ),
    ),
    Rule(
        # NCCL warns of nothing that is harmless, so what is not known above is told, too.
        "nccl_internal",
        ("",),
        weight=Weight.WAITING,
        severity=Severity.WARNING,
        voices=voices(Voice.NCCL_WARN),
        first_check="what NCCL says here; the topology it found (NCCL_DEBUG=INFO)",
        matches=(
            "host-a:213:260 [3] misc/param.cc:53 NCCL WARN Something that nobody has seen so far",
        ),
        rejects=("host-a:213:260 [3] NCCL INFO Something that nobody has seen so far",),
    ),
)
"""For what no other rule knows: tried after all rules for NCCL's warnings."""
