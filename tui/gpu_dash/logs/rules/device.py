"""CUDA and HIP at work: faults of kernels, drivers that do not fit, cards that are not seen."""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Case, Rule, Weight
from gpu_dash.logs.rules.voice import Voice, voices

_SAID = voices(Voice.RAW, Voice.FAILURE, Voice.WARNING)
_NOTED = voices(Voice.RAW, Voice.FAILURE, Voice.WARNING, Voice.NOTE)

RULES = (
    Rule(
        "fabric_manager",
        (
            "system not yet initialized",
            "Error 802",
            "cudaErrorSystemNotReady",
            "nvidia-fabricmanager.service failed",
            "nvidia-fabricmanager.service: Failed",
        ),
        voices=_SAID,
        matches=(
            "torch.AcceleratorError: CUDA error: system not yet initialized",
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda "
            "functions before calling NumCudaDevices() that might have already set an error? Error "
            "802: system not yet initialized",
        ),
        rejects=("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward",),
    ),
    Rule(
        "hip_no_binary",
        (
            "hipErrorNoBinaryForGpu",
            "HIP error: no kernel image",
            "HIP error: invalid device function",
            "hipErrorInvalidDeviceFunction",
            "hipErrorInvalidImage",
            "No compatible code objects found for",
            "Unable to find code object",
            "TensileLibrary",
            "for GPU arch : gfx",
            "only support arch gfx",
        ),
        unless=r"^:[1-9]:",
        matches=(
            "RuntimeError: HIP error: no kernel image is available for execution on the device",
            '"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"',
            "rocBLAS error: Cannot read /opt/rocm/lib/library/TensileLibrary.dat: No such file or "
            "directory for GPU arch : gfx1036",
        ),
        rejects=(
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        ),
    ),
    Rule(
        "illegal_access",
        (
            "an illegal memory access was encountered",
            "an illegal instruction was encountered",
            "misaligned address",
            "unspecified launch failure",
            "device-side assert triggered",
            "Memory access fault by GPU",
            "invalid program counter",
            "cudaErrorIllegalAddress",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "CUDA_ERROR_LAUNCH_FAILED",
            "CUDA_ERROR_ILLEGAL_INSTRUCTION",
            "hardware stack error",
            "cudaErrorAssert",
            "cudaErrorLaunchFailure",
            "CUBLAS_STATUS_EXECUTION_FAILED",
            "CUDNN_STATUS_EXECUTION_FAILED",
        ),
        unless=r"HIP error: unspecified",
        values=r"GPU node-(?P<node>\d+)|^ *what\(\): .*?\[(?:PG [^\]]*)?Rank (?P<rank>\d+)\]",
        cases=(
            Case(
                "HIP|Memory access fault",
                "another attention backend, AITER off, another ROCm version; amdgpu in the kernel "
                "log",
            ),
            Case(
                "device-side assert",
                "an index out of range: tokenizer and vocabulary against the model; "
                "CUDA_LAUNCH_BLOCKING=1 to see the kernel",
            ),
        ),
        matches=(
            "[rank1]:[E109 08:01:10.1 ProcessGroupNCCL.cpp:1895] [PG ID 2 PG GUID 3 Rank 1] "
            "Process group watchdog thread terminated with exception: CUDA error: an illegal "
            "memory access was encountered",
            "torch.AcceleratorError: CUDA error: unspecified launch failure",
            "Memory access fault by GPU node-4 (Agent handle: 0x5635e3db2590) on address "
            "0x7f189722f000. Reason: Page not present or supervisor privilege.",
        ),
        rejects=(
            "CUDA kernel errors might be asynchronously reported at some other API call, so the "
            "stacktrace below might be incorrect.",
        ),
    ),
    Rule(
        "illegal_access",
        ("block: [",),
        pattern=r"block: \[\d.*thread: \[\d.*Assertion ",
        voices=voices(Voice.RAW),
        weight=Weight.DETAIL,
        first_check="an index out of range on the device: tokenizer and vocabulary against the "
        "model, length of the prompt",
        matches=(
            "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1292: indexSelectLargeIndex: block: "
            "[1,0,0], thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
        ),
        rejects=("Assertion `x` failed.",),
    ),
    Rule(
        "driver_mismatch",
        ("FlashAttention only supports", "FlashAttention only supports Ampere"),
        first_check="another attention backend: this one knows only newer cards",
        matches=("RuntimeError: FlashAttention only supports Ampere GPUs or newer.",),
        rejects=("INFO 01-02 03:04:05 [cuda.py:3] Using FlashAttention version 3",),
    ),
    Rule(
        "driver_mismatch",
        (
            "NVIDIA driver on your system is too old",
            "driver version is insufficient",
            "Error 803",
            "Error 804",
            "forward compatibility was attempted",
            "unsupported display driver / cuda driver combination",
            "no kernel image is available",
            "unsupported toolchain",
            "CUDA unknown error",
            "unsatisfied condition: cuda",
            "CUDA error: invalid device function",
            "Driver/library version mismatch",
            "is not compatible with the current PyTorch installation",
            "nvrtc: error: invalid value for --gpu-architecture",
            "Unsupported gpu architecture",
            "device kernel image is invalid",
            "is not defined for option 'gpu-name'",
        ),
        voices=_SAID,
        cases=(
            Case(
                "kernel image|not compatible with the current|gpu.architecture|gpu-name",
                "compute capability of the card against the wheel's architecture list",
            ),
            Case(
                "Error 804|forward compat",
                "CUDA compat libraries of the image on a card that may not use them: an image of "
                "the driver's CUDA version",
            ),
            Case("version mismatch", "the driver was updated: reboot, or reload its modules"),
        ),
        matches=(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward "
            "compatibility was attempted on non supported HW",
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            "RuntimeError: Triton Error [CUDA]: device kernel image is invalid",
            "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
            "Failed to initialize NVML: Driver/library version mismatch",
            "docker: Error response from daemon: nvidia-container-cli: requirement error: "
            "unsatisfied condition: cuda>=12.9, please update your driver to a newer version",
        ),
        rejects=("host-a:213:213 [1] NCCL INFO cudaDriverVersion 12080",),
    ),
    Rule(
        "device_visibility",
        ("No platform detected", "Device string must not be empty"),
        voices=_NOTED,
        first_check="container sees the GPUs (`nvidia-smi` inside, --gpus all); "
        "CUDA_VISIBLE_DEVICES",
        matches=(
            "INFO 05-14 04:44:35 [__init__.py:243] No platform detected, vLLM is running on "
            "UnspecifiedPlatform",
        ),
        rejects=("INFO 05-14 04:44:35 [__init__.py:243] Automatically detected platform cuda.",),
    ),
    Rule(
        "device_visibility",
        (
            "Failed to infer device type",
            "No CUDA GPUs are available",
            "Cannot find any GPU",
            "No HIP GPUs are available",
            "no CUDA-capable device is detected",
            "no ROCm-capable device is detected",
            "invalid device ordinal",
            "Inconsistent GPU visibility",
            "Found no NVIDIA driver on your system",
            "libcuda.so.1: cannot open shared object file",
            "libnvidia-ml.so.1: cannot open shared object file",
            "NVML Shared Library Not Found",
            "NVMLError_LibraryNotFound",
            "number of available GPUs",
            "total number of available GPUs",
            "exceeds the total number of available",
            "device >= 0 && device < num_gpus",
            "driver not loaded",
            "could not select device driver",
            "Torch not compiled with CUDA enabled",
            "has no GPU available",
            "Torch not compiled with ROCm",
            "max local gpu count",
            "Cannot provide a placement group requiring",
            "You don't have enough GPUs available",
            "Not enough total available nodes",
            "--device-ids index",
            "exceeds the number of visible",
            "device error: ",
            "CUDA-capable device(s) is/are busy or unavailable",
            "all CUDA-capable devices are busy",
            "Failed to initialize NVML: Unknown Error",
            "Failed to initialize NVML: Insufficient Permissions",
            "ROCk module is NOT loaded",
            "Unable to open /dev/kfd",
            "No devices were found",
        ),
        unless=r"device error: (?!\d+: unknown device)",
        cases=(
            Case("Inconsistent", "set only HIP_VISIBLE_DEVICES, or make both equal"),
            Case("driver|libcuda|libnvidia|NVML", "`nvidia-smi` inside the container: --gpus all"),
            Case(
                "/dev/kfd|ROCk",
                "`rocminfo` inside the container: --device /dev/kfd --device /dev/dri, the groups "
                "video and render",
            ),
            Case(
                "busy or unavailable", "who holds the card, and its compute mode: `nvidia-smi -q`"
            ),
        ),
        matches=(
            "RuntimeError: No CUDA GPUs are available",
            'docker: Error response from daemon: could not select device driver "" with '
            "capabilities: [[gpu]].",
            "AssertionError: Torch not compiled with CUDA enabled",
            "RuntimeError: CUDA error: invalid device ordinal",
            "ValueError: Tensor parallel size (4) cannot be larger than the number of available "
            "GPUs (2).",
            "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
            "AssertionError: please set tensor_parallel_size (4) to less than max local gpu count "
            "(2)",
            "Unable to open /dev/kfd read-write: Permission denied",
            "nvidia-container-cli: device error: 3: unknown device: unknown",
        ),
        rejects=("IndexError: index 7 is out of bounds for dimension 0 with size 4",),
    ),
    Rule(
        "device_visibility",
        ("is out of bounds",),
        pattern=r"local rank \S+ is out of bounds",
        first_check="fewer GPUs are visible than ranks are asked for: CUDA_VISIBLE_DEVICES",
        matches=("AssertionError: DP adjusted local rank 3 is out of bounds. ",),
        rejects=("IndexError: index 7 is out of bounds for dimension 0 with size 4",),
    ),
    Rule(
        "hip_error",
        (
            "HIP error:",
            "HSA_STATUS_ERROR",
            "hipError",
            "rocBLAS error",
            "MIOpen Error",
            "HSA exception",
        ),
        unless=r"^:[1-9]:",
        matches=(
            ":0:rocdevice.cpp            :3020: 5875275709338d us:  Callback: Queue 0x7f4580c00000 "
            "aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a "
            "hardware exception. code: 0x1016",
            "RuntimeError: HIP error: unknown error",
        ),
        rejects=(
            "HIP kernel errors might be asynchronously reported at some other API call, so the "
            "stacktrace below might be incorrect.",
        ),
    ),
)
