"""What a card, a platform or an installation does not support: FlashInfer, quantizations, types."""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Rule, Weight, When
from gpu_dash.logs.rules.voice import Voice, voices
from gpu_dash.model.log import Severity

RULES = (
    Rule(
        "flashinfer",
        (
            "FlashInfer requires",
            "FlashInfer is required",
            "FlashInfer backend requires",
            "Could not find nvcc",
            "directory: 'nvcc'",
            "bin/nvcc'",
            "No module named 'flashinfer",
            "FlashInfer backend is not available",
            "requires CUDA >= ",
            "flashinfer is not installed",
            "No supported CUDA architectures found for major versions",
            "does not match flashinfer version",
            "Please install/check flashinfer",
        ),
        matches=(
            "RuntimeError: FlashInfer requires GPUs with sm75 or higher",
            "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't "
            "exist",
            "FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'",
            "RuntimeError: flashinfer-cubin version (0.6.1) does not match flashinfer version "
            "(0.5.3). Please install the same version of both packages.",
            "RuntimeError: No supported CUDA architectures found for major versions [10].",
        ),
        rejects=("INFO 01-02 03:04:05 [cuda.py:3] Using FlashInfer backend on V1 engine.",),
    ),
    Rule(
        "flashinfer",
        ("Ninja build failed", "ninja", "Ninja", "JIT", "jit", "cubin", "nvcc fatal"),
        pattern=r"(?i)error|fail",
        when=When(text=r"(?i)flashinfer", frames=r"/flashinfer/"),
        matches=(
            '(Worker_TP0 pid=4) ERROR 09-26 10:57:34 [multiproc_executor.py:671]   File "/usr/lib/'
            'flashinfer/jit/cpp_ext.py", line 252, in run_ninja\n'
            "(Worker_TP0 pid=4) ERROR 09-26 10:57:34 [multiproc_executor.py:671] RuntimeError: "
            "Ninja build failed. Ninja output:",
        ),
        rejects=("RuntimeError: Ninja is required to load C++ extensions",),
    ),
    Rule(
        "flashinfer",
        ("FlashInfer is not available", "FlashInfer is not installed"),
        weight=Weight.CONDITION,
        severity=Severity.WARNING,
        voices=voices(Voice.WARNING),
        first_check="nothing must be done: a slower sampler is used; install FlashInfer",
        matches=(
            "WARNING 05-09 10:18:05 [topk_topp_sampler.py:69] FlashInfer is not available. Falling "
            "back to the PyTorch-native implementation of top-p & top-k sampling.",
        ),
        rejects=(
            "INFO 05-03 20:21:10 [topk_topp_sampler.py:44] Currently, FlashInfer top-p & top-k "
            "sampling sampler is disabled because FlashInfer>=v0.2.3 is not backward compatible.",
        ),
    ),
    Rule(
        "quant_unsupported",
        (
            "is not supported for the current GPU",
            "fp8e4nv not supported",
            "not supported in this architecture",
            "quantization is currently not supported",
            "_scaled_mm is only supported",
            "No valid MXFP4",
            "FP8 is not supported",
            "does not support FP8",
            "Unknown quantization method",
            "does not support weight_bits",
            "quantization is not supported",
            "No compiled cutlass_scaled_mm",
            "Failed to find a kernel that can implement",
            "MoE backend supports",
            "Unsupported num_bits",
            "Unsupported weight_bits",
            "Unsupported quantization config",
            "unsupported quantization scheme",
            "not supported by marlin kernel",
            "Unsupported ModelOpt",
            "requires GPU compute capability",
            "does not match the quantization method specified",
        ),
        matches=(
            "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum "
            "capability: 89. Current capability: 86.",
            "ValueError('type fp8e4nv not supported in this architecture. The supported fp8 dtypes "
            "are (fp8e4b15, fp8e5)')",
            "ValueError: awq quantization is currently not supported in rocm.",
            "ValueError: Failed to find a kernel that can implement the WNA16 linear layer.",
            "NotImplementedError: No NvFp4 MoE backend supports the deployment configuration.",
        ),
        rejects=(
            "WARNING 01-02 03:04:05 [marlin_utils_fp8.py:80] Your GPU does not have native support "
            "for FP8 computation but FP8 quantization is being used.",
        ),
    ),
    Rule(
        "dtype_unsupported",
        (
            "only supported on GPUs with compute capability",
            "dtype is not supported",
            "is not supported for quantization method",
            "KV cache is not supported",
            "does not support float16",
            "does not support bfloat16",
        ),
        pattern=r"(?i)float16|dtype|fp8|kv.cache",
        matches=(
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least "
            "8.0. Your Tesla V100-SXM2-32GB GPU has compute capability 7.0.",
            "ValueError: torch.bfloat16 is not supported for quantization method awq. Supported "
            "dtypes: [torch.float16]",
        ),
        rejects=(
            "(APIServer pid=4) INFO 01-02 03:04:05 [model.py:2495] Downcasting torch.float32",
        ),
    ),
)
