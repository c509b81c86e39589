"""The card itself: XID and SXid, lost cards, ECC and NVLink, heat, amdgpu resets.

Kernel lines count only as kernel lines: a process name or a device name can quote ``NVRM``.
"""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Case, Rule, Weight
from gpu_dash.logs.rules.voice import Voice, voices
from gpu_dash.model.log import Severity

_KERNEL = voices(Voice.KERNEL)
_ANYWHERE = voices(Voice.KERNEL, Voice.RAW, Voice.FAILURE)
_BUS_ID = r"(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"
_XID = r"^NVRM: Xid \(PCI:(?P<pci>[0-9a-fA-F:.]+)\): (?P<xid>"

RULES = (
    Rule(
        "gpu_lost",
        ("NVRM: Xid",),
        pattern=_XID + r"79|119|120)\b",
        weight=Weight.DETAIL,
        voices=_KERNEL,
        matches=(
            "May 18 19:02:39 host-a kernel: NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off "
            "the bus.",
            "[  812.118922] NVRM: Xid (PCI:0000:41:00): 119, pid=2214, name=python3, Timeout after "
            "6s of waiting for RPC response from GPU2 GSP! Expected function 76.",
        ),
        rejects=(
            "[88211.120044] NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=VLLM::Worker_TP, Ch "
            "0000000b, intr 00000000. MMU Fault",
        ),
    ),
    Rule(
        "gpu_ecc_nvlink",
        ("NVRM: Xid",),
        pattern=_XID + r"48|64|74|94|95|121|137|140|14[4-9]|150|155)\b",
        weight=Weight.DETAIL,
        voices=_KERNEL,
        first_check="XID {xid}: drain the GPU; ECC, row remapping and NVLink counters; reset it",
        matches=(
            "[88211.120044] NVRM: Xid (PCI:0000:3b:00): 94, pid=4242, name=python3, Contained: "
            "SM (0x1). RST: No, D-RST: No",
            "[88211.120044] NVRM: Xid (PCI:0000:3b:00): 74, pid='<unknown>', name=<unknown>, "
            "NVLink: fatal error detected on link 4",
        ),
        rejects=(
            "[88211.120044] NVRM: Xid (PCI:0000:3b:00): 45, pid=4242, name=python3, Ch 00000001 "
            "caused by previous Xid 149",
        ),
    ),
    Rule(
        "gpu_ecc_nvlink",
        ("NVRM: Xid",),
        pattern=_XID + r"63|92)\b",
        weight=Weight.DETAIL,
        severity=Severity.WARNING,
        voices=_KERNEL,
        first_check="XID {xid}: row remapping and ECC counters; a pending remap needs a reset",
        matches=(
            "[5211.1] NVRM: Xid (PCI:0000:3b:00): 63, pid=1, name=x, Row Remapper: New row marked "
            "for remapping, reset gpu to activate.",
        ),
        rejects=("[5211.1] NVRM: Xid (PCI:0000:3b:00): 13, pid=1, name=x, Graphics SM Warp",),
    ),
    Rule(
        "gpu_xid_app",
        ("NVRM: Xid",),
        pattern=_XID + r"45)\b",
        weight=Weight.WAITING,
        severity=Severity.INFO,
        voices=_KERNEL,
        first_check="clean-up of a process that ended: the XID before it; alone after a stop, none",
        matches=(
            "[ 4120.560106] NVRM: Xid (PCI:0000:48:00): 45, pid=2288, name=VLLM::Worker, channel "
            "0x0000000a",
        ),
        rejects=("[ 4120.560106] NVRM: GPU at PCI:0000:48:00: GPU-00000000-1111",),
    ),
    Rule(
        "gpu_xid_app",
        ("NVRM: Xid",),
        pattern=_XID + r"154)\b",
        weight=Weight.UNEXPLAINED,
        voices=_KERNEL,
        first_check="the action that the line names (reset, reboot), after the XID before it",
        matches=(
            "[ 4120.5] NVRM: Xid (PCI:0000:48:00): 154, GPU recovery action changed from 0x0 "
            "(None) to 0x1 (GPU Reset Required)",
        ),
        rejects=("[ 4120.5] NVRM: GPU at PCI:0000:48:00: GPU-00000000-1111",),
    ),
    Rule(
        "gpu_xid_app",
        ("NVRM: Xid",),
        pattern=_XID + r"61|62|109)\b",
        weight=Weight.DETAIL,
        severity=Severity.CRITICAL,
        voices=_KERNEL,
        first_check="XID {xid}: the card hung: reset that GPU",
        matches=("[ 4120.505406] NVRM: Xid (PCI:0000:48:00): 62, 00002740 00002b08 00001126",),
        rejects=(
            "[ 4120.560106] NVRM: Xid (PCI:0000:48:00): 79, pid=2288, GPU has fallen off the bus.",
        ),
    ),
    Rule(
        "gpu_xid_app",
        ("NVRM: Xid",),
        pattern=_XID + r"\d+)",
        weight=Weight.DETAIL,
        voices=_KERNEL,
        matches=(
            "[88211.120044] NVRM: Xid (PCI:0000:3b:00): 13, pid=4242, name=VLLM::Worker_TP, "
            "Graphics SM Warp Exception on (GPC 3, TPC 1, SM 0): Out Of Range Address",
        ),
        rejects=("[1.0] nvidia: module name quotes NVRM: Xid (PCI:0000:3b:00): 13 in its text",),
    ),
    Rule(
        "gpu_ecc_nvlink",
        ("SXid",),
        pattern=r"^nvidia-nvswitch\d*: SXid \(PCI:(?P<pci>[^)]+)\): (?P<xid>\d+)",
        weight=Weight.DETAIL,
        voices=_KERNEL,
        first_check="SXid {xid} of an NVSwitch: fabric manager's log, NVLink counters; then reset",
        matches=(
            "[ 411.2] nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 24007, Fatal, Link 46 sourcing "
            "IO ring error",
        ),
        rejects=("[ 411.2] nvidia-nvswitch3: open (major=510)",),
    ),
    Rule(
        "gpu_lost",
        (
            "fallen off the bus",
            "GPU is lost",
            "GpuIsLost",
            "GPU_IS_LOST",
            "GPU lost from the bus",
            "device lost from bus",
            "RmInitAdapter failed",
            "rm_init_adapter failed",
            "Cannot attach gpu",
            "waiting for RPC response from GPU",
            "Unable to determine the device handle for",
            "GSP Timeout",
        ),
        values=rf"GPU ?(?P<gpu>\d+): |{_BUS_ID}",
        weight=Weight.DETAIL,
        voices=_ANYWHERE,
        first_check="XID of that GPU in the kernel log; reset or reboot",
        matches=(
            "Unable to determine the device handle for GPU5: 0000:9D:00.0: GPU is lost.  Reboot "
            "the system to recover this GPU",
            "[ 1843.308145] NVRM: fallen off the bus and is not responding to commands.",
            "pynvml.NVMLError_GpuIsLost: GPU is lost",
            "[ 991.2] amdgpu 0000:0a:00.0: amdgpu: device lost from bus!",
            "[ 21.1] NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0",
        ),
        rejects=("May 18 19:02:39 host-a kernel: NVRM: GPU at PCI:0000:2b:00: GPU-00000000-1111",),
    ),
    Rule(
        "gpu_ecc_nvlink",
        (
            "uncorrectable ECC error",
            "uncorrectable NVLink error",
            "NVLink error encountered",
            "uncorrectable hardware error",
            "peer GPU memory over nvlink",
            "ERREVENT_ATHUB_INTERRUPT",
            "poison is consumed",
        ),
        values=_BUS_ID,
        weight=Weight.DETAIL,
        voices=_ANYWHERE,
        cases=(
            Case(
                "(?i)nvlink",
                "NVLink error counters (`nvidia-smi nvlink -e`) and XID 74 in the kernel log",
            ),
            Case("CUDA", "ECC counters and XID 48/94/95 of that GPU; drain and reset it"),
        ),
        matches=(
            "RuntimeError: CUDA error: uncorrectable ECC error encountered",
            "torch.AcceleratorError: CUDA error: Invalid access of peer GPU memory over nvlink or "
            "a hardware error",
            "[500967.571516] amdgpu 0000:dd:00.0: {1}uncorrectable hardware error"
            "(ERREVENT_ATHUB_INTERRUPT) detected!",
        ),
        rejects=("[ 12.2] amdgpu 0000:e3:00.0: amdgpu: MEM ECC is active.",),
    ),
    # -- heat and power in the kernel log --------------------------------------------------------
    Rule(
        "thermal",
        ("over temperature range", " CTF"),
        values=_BUS_ID,
        weight=Weight.CONDITION,
        severity=Severity.CRITICAL,
        voices=_KERNEL,
        first_check="stop the load now: at the critical temperature the host is powered off",
        matches=(
            "[11822.7] amdgpu 0000:29:00.0: amdgpu: ERROR: GPU over temperature range(SW CTF) "
            "detected!",
            "[11822.7] amdgpu 0000:29:00.0: amdgpu: ERROR: System is going to shutdown due to GPU "
            "HW CTF!",
        ),
        rejects=("[ 12.2] amdgpu 0000:29:00.0: amdgpu: SMU is initialized successfully!",),
    ),
    Rule(
        "power",
        ("GPU is throttled",),
        pattern=r"expect performance decrease\. *(?:PPT\d?|TDC\w*|power)[ ,.]*$",
        values=_BUS_ID,
        weight=Weight.CONDITION,
        severity=Severity.INFO,
        voices=_KERNEL,
        first_check="normal at full load: compare the power limit with the card's default",
        matches=(
            "[11822.7] amdgpu 0000:29:00.0: amdgpu: WARN: GPU is throttled, expect performance "
            "decrease. PPT0.",
        ),
        rejects=(
            "[11822.7] amdgpu 0000:29:00.0: amdgpu: WARN: GPU is throttled, expect performance "
            "decrease. Socket thermal.",
        ),
    ),
    Rule(
        "thermal",
        ("thermal throttling temperature reached", "GPU is throttled", "thermal violation"),
        values=rf"{_BUS_ID}|in GPU (?P<gpu>\d+)",
        weight=Weight.CONDITION,
        voices=voices(Voice.KERNEL, Voice.RAW, Voice.FAILURE, Voice.WARNING),
        cases=(
            Case(
                "HBM", "memory temperature: air flow through the passive card; lower the power cap"
            ),
        ),
        matches=(
            "[11822.771203] amdgpu 0000:29:00.0: amdgpu: WARN: GPU thermal throttling temperature "
            "reached, expect performance decrease. HBM.",
            "ERROR [1514002:1514004] [[Health]] Detected a WARNING in health system Thermal: "
            "'Detected clocks event due to thermal violation in GPU 2.",
        ),
        rejects=("[ 12.2] amdgpu 0000:29:00.0: amdgpu: thermal sensor registered",),
    ),
    # -- hangs of AMD cards ----------------------------------------------------------------------
    Rule(
        "gpu_reset_amd",
        (
            "timeout, signaled seq",
            "timeout, but soft recovered",
            "GPU reset begin",
            "GPU reset(",
            "GPU mode1 reset",
            "GPU mode2 reset",
            "Waiting for fences timed out",
            "queue preemption time out",
            "Queue preemption time out",
            "MODE1 reset",
            "MODE2 reset",
            "BACO reset",
            "MES failed to respon",
            "MES might be in unrecoverable state",
            "from MES, doorbell",
            "fence wait loop timeout",
            "unsuccessful queues preemption",
            "Failed to evict process queues",
            "device wedged",
        ),
        values=_BUS_ID,
        weight=Weight.DETAIL,
        voices=_KERNEL,
        matches=(
            "[ 2237.944235] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, "
            "signaled seq=16060, emitted seq=16062",
            "[ 2237.944732] amdgpu 0000:0a:00.0: amdgpu: GPU reset begin!",
            "[ 2239.1] amdgpu 0000:0a:00.0: amdgpu: GPU reset(2) succeeded!",
            "[ 2239.1] amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE",
            "[ 2239.1] amdgpu: qcm fence wait loop timeout expired",
            "[ 2239.1] amdgpu: Failed to evict process queues",
        ),
        rejects=(
            "[ 2237.944505] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: "
            "process  pid 0 thread  pid 0",
        ),
    ),
    Rule(
        "gpu_reset_amd",
        ("HW Exception by GPU", "GPU Hang"),
        values=r"GPU node-(?P<node>\d+)",
        weight=Weight.DETAIL,
        matches=(
            "HW Exception by GPU node-1 (Agent handle: 0x5635e3db2590) reason :GPU Hang",
            ":0:rocdevice.cpp :2982: 59 us: HW Exception by GPU node-5 reason :GPU Hang",
        ),
        rejects=(
            "Memory access fault by GPU node-4 (Agent handle: 0x5635e3db2590) on address "
            "0x7f189722f000. Reason: Page not present or supervisor privilege.",
        ),
    ),
    Rule(
        "illegal_access",
        ("page fault (src_id", "no-retry page fault"),
        values=_BUS_ID,
        weight=Weight.DETAIL,
        severity=Severity.ERROR,
        voices=_KERNEL,
        matches=(
            "[ 99.1] amdgpu 0000:c3:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 "
            "pasid:32794)",
        ),
        rejects=("[ 99.1] amdgpu 0000:c3:00.0: amdgpu:          MORE_FAULTS: 0x1",),
    ),
)
