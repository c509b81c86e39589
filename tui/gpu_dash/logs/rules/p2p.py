"""Peer-to-peer access between GPUs, and the all-reduce that vLLM builds on it."""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Rule, Weight, When
from gpu_dash.logs.rules.voice import Voice, voices
from gpu_dash.model.log import Severity

_SAID = voices(Voice.RAW, Voice.FAILURE, Voice.NCCL_WARN)

RULES = (
    Rule(
        "p2p_allreduce",
        ("iommu=",),
        pattern=r"Missing \"(?:amd_)?iommu=",
        weight=Weight.CONDITION,
        severity=Severity.WARNING,
        voices=voices(Voice.NCCL_WARN),
        first_check="`iommu=pt` on the kernel command line, if collectives hang",
        matches=(
            'host-a:402:402 [0] hipify/src/init.cc:179 NCCL WARN Missing "iommu=pt" from kernel '
            "command line which can lead to system instablity or hang!",
        ),
        rejects=(
            'host-a:4:4 [0] init.cc:126 NCCL WARN Missing "HSA_FORCE_FINE_GRAIN_PCIE=1" from '
            "environment which can lead to low RCCL performance, system instablity or hang!",
        ),
    ),
    Rule(
        "p2p_allreduce",
        (
            "custom_all_reduce.cuh",
            "custom_all_reduce.cu:",
            "quick_all_reduce.cuh",
            "peer access is not supported",
            "peer access has not been enabled",
            "batch testing peer-to-peer access",
            "peer mapping resources exhausted",
            "cudaIpcOpenMemHandle",
            "hipIpcOpenMemHandle",
            "hipIpcGetMemHandle",
            "cudaErrorPeerAccess",
            "cudaDeviceEnablePeerAccess",
            "hipDeviceEnablePeerAccess",
        ),
        voices=_SAID,
        matches=(
            "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:310 'invalid argument'",
            "host-a:204802:204836 [1] src/transport/p2p.cc:220 NCCL WARN hipIpcGetMemHandle "
            "failed : invalid argument",
        ),
        rejects=(
            "INFO 03-20 16:01:58 custom_all_reduce.py:226] Registering 5635 cuda graph addresses",
        ),
    ),
    Rule(
        "p2p_allreduce",
        ("CUDA error:", "HIP error:"),
        when=When(frames=r"custom_all_reduce\.py|quick_all_reduce\.py|flashinfer_all_reduce"),
        matches=(
            "(VllmWorker rank=1 pid=8) ERROR 04-16 01:01:44 [multiproc_executor.py:470]   File "
            '"/opt/vllm/distributed/device_communicators/custom_all_reduce.py", line 300, in '
            "register_graph_buffers\n"
            "(VllmWorker rank=1 pid=8) ERROR 04-16 01:01:44 [multiproc_executor.py:470] "
            "RuntimeError: CUDA error: invalid argument",
        ),
        rejects=("RuntimeError: CUDA error: invalid argument",),
    ),
    Rule(
        "allreduce_fallback",
        (
            "all-reduce",
            "allreduce",
            "all_reduce",
            "AllReduce",
            "Allreduce",
            "All Reduce",
            "CustomAllreduce",
            "QuickReduce",
            "SymmMem",
            "symmetric memory",
            "Symmetric memory",
        ),
        pattern=r"(?i)\bdisabled?\b|not supported|not available|unavailable|fall(?:s|ing)? back"
        r"|\bfail",
        unless=r"tp_size <= 1",
        weight=Weight.CONDITION,
        severity=Severity.WARNING,
        voices=voices(Voice.WARNING, Voice.FAILURE),
        matches=(
            "(VllmWorkerProcess pid=9503) WARNING 07-02 17:41:37 custom_all_reduce.py:118] Custom "
            "allreduce is disabled because it's not supported on more than two PCIe-only GPUs. To "
            "silence this warning, specify disable_custom_all_reduce=True explicitly.",
            "(Worker_TP0 pid=7) WARNING 08-11 07:01:02 [symm_mem.py:66] SymmMemCommunicator: "
            "Device capability 8.0 not supported, communicator is not available.",
            "(Worker_TP0 pid=7) ERROR 09-11 07:01:02 [allreduce_rms_fusion.py:66] Failed to "
            "initialize FlashInfer All Reduce workspace: no multicast. AllReduce fusion pass will "
            "be disabled.",
        ),
        rejects=(
            "(Worker_TP0 pid=5821) INFO 07-31 09:09:49 [flashinfer_all_reduce.py:170] Initialized "
            "FlashInfer Allreduce norm fusion workspace with backend=mnnvl",
        ),
    ),
)
