"""What to write instead of names that are gone or never were."""

from __future__ import annotations

from gpu_dash.server.flags.history import Release

FLAG_INSTEAD: dict[str, str | None] = {
    "swap-space": "kv-offloading-size (KV cache to RAM) or cpu-offload-gb (weights); "
    "no effect since the V1 engine",
    "max-seq-len-to-capture": "max-cudagraph-capture-size "
    "(counts batch tokens, not sequence length)",
    "max-context-len-to-capture": "max-cudagraph-capture-size "
    "(counts batch tokens, not sequence length)",
    "cuda-graph-sizes": "cudagraph-capture-sizes",
    "num-scheduler-steps": None,
    "multi-step-stream-outputs": None,
    "scheduler-delay-factor": None,
    "use-v2-block-manager": None,
    "preemption-mode": None,
    "num-lookahead-slots": None,
    "disable-async-output-proc": None,
    "device": None,
    "image-input-type": None,
    "image-token-id": None,
    "image-input-shape": None,
    "image-feature-size": None,
    "enable-reasoning": "reasoning-parser alone",
    "guided-decoding-backend": "structured-outputs-config.backend",
    "guided-decoding-disable-fallback": "structured-outputs-config.disable_fallback",
    "guided-decoding-disable-any-whitespace": "structured-outputs-config.disable_any_whitespace",
    "guided-decoding-disable-additional-properties": "structured-outputs-config"
    ".disable_additional_properties",
    "task": "runner and convert",
    "override-pooler-config": "pooler-config",
    "rope-scaling": "hf-overrides",
    "rope-theta": "hf-overrides",
    "worker-use-ray": "distributed-executor-backend ray",
    "engine-use-ray": None,
    "speculative-model": "spec-model or speculative-config.model",
    "num-speculative-tokens": "spec-tokens or speculative-config.num_speculative_tokens",
    "speculative-draft-tensor-parallel-size": "speculative-config.draft_tensor_parallel_size",
    "speculative-max-model-len": "speculative-config.max_model_len",
    "speculative-model-quantization": "speculative-config.quantization",
    "speculative-disable-by-batch-size": "speculative-config",
    "ngram-prompt-lookup-max": "speculative-config.prompt_lookup_max",
    "ngram-prompt-lookup-min": "speculative-config.prompt_lookup_min",
    "disable-log-requests": "nothing: requests are not logged unless enable-log-requests is given",
    "disable-mm-preprocessor-cache": "mm-processor-cache-gb 0",
    "disable-frontend-multiprocessing": None,
    "enable-multimodal-encoder-data-parallel": "mm-encoder-tp-mode data",
    "num-redundant-experts": "eplb-config.num_redundant_experts",
    "eplb-window-size": "eplb-config.window_size",
    "eplb-step-interval": "eplb-config.step_interval",
    "eplb-log-balancedness": "eplb-config.log_balancedness",
    "tokenizer-pool-size": None,
    "tokenizer-pool-type": None,
    "lora-extra-vocab-size": None,
    "long-lora-scaling-factors": None,
    "quantization-param-path": None,
    # names that people and models invent
    "model-name": "served-model-name",
    "model-path": "the model as the first argument",
    "context-length": "max-model-len",
    "ctx-size": "max-model-len",
    "max-context-length": "max-model-len",
    "max-seq-len": "max-model-len",
    "max-length": "max-model-len",
    "max-batch-size": "max-num-seqs",
    "max-concurrent-requests": "max-num-seqs",
    "batch-size": "max-num-seqs",
    "num-gpus": "tensor-parallel-size",
    "gpus": "tensor-parallel-size",
    "tp-size": "tensor-parallel-size",
    "tp": "tensor-parallel-size",
    "gpu-memory": "gpu-memory-utilization",
    "mem-fraction-static": "gpu-memory-utilization",
    "kv-cache-type": "kv-cache-dtype",
    "enable-flash-attention": "attention-backend FLASH_ATTN",
    "flash-attn": "attention-backend FLASH_ATTN",
    "disable-prefix-caching": "no-enable-prefix-caching",
    "log-requests": "enable-log-requests",
}
"""Long flag → what does its work now; ``None`` where nothing does."""

VARIABLE_INSTEAD: dict[str, str | None] = {
    "VLLM_ATTENTION_BACKEND": "--attention-backend",
    "VLLM_USE_V1": None,
    "VLLM_RPC_TIMEOUT": None,
    "VLLM_ENGINE_ITERATION_TIMEOUT_S": None,
    "VLLM_TORCH_PROFILER_DIR": "--profiler-config.torch_profiler_dir "
    "(with --profiler-config.profiler torch)",
    "VLLM_USAGE_DISABLE": "VLLM_NO_USAGE_STATS",
    "VLLM_QUANTIZE": "--quantization",
    "VLLM_ENABLE_PREFIX_CACHING": "--enable-prefix-caching (on by default)",
    "VLLM_TENSOR_PARALLEL_SIZE": "--tensor-parallel-size",
    "VLLM_PIPELINE_PARALLEL_SIZE": "--pipeline-parallel-size",
    "VLLM_GPU_MEMORY_UTILIZATION": "--gpu-memory-utilization",
    "VLLM_MAX_MODEL_LEN": "--max-model-len",
    "VLLM_MAX_NUM_SEQS": "--max-num-seqs",
    "VLLM_KV_CACHE_DTYPE": "--kv-cache-dtype",
    "VLLM_DTYPE": "--dtype",
    "VLLM_LOG_LEVEL": "VLLM_LOGGING_LEVEL",
    "VLLM_DISABLE_USAGE_STATS": "VLLM_NO_USAGE_STATS",
}

PROGRAM_INSTEAD = {
    "vllm.entrypoints.api_server": "vllm serve (another HTTP interface: /v1, not /generate)",
}
"""Modules that are gone from every release since 0.6 that is checked against."""

NO_EFFECT: dict[str, tuple[Release, str]] = {
    "swap-space": (
        (0, 9),
        "accepted, and without effect: the V1 engine computes again, never swaps",
    ),
    "use-v2-block-manager": ((0, 6), "accepted, and without effect: it is the only block manager"),
}
"""Flag → the release from which it is taken and does nothing, until it is gone."""

FORK_FLAGS = frozenset(
    {
        "use-padding-aware-scheduling",
        "fake-image-input-shape",
        "weights-load-device",
        "split-qkv",
        "num-lookahead-slots-hpu",
        "override-neuron-config",
    }
)
"""Flags of hardware forks and plug-ins: unknown to vLLM itself, right where they are at home."""

FORK_VARIABLES = frozenset(
    {"VLLM_SKIP_WARMUP", "VLLM_PROMPT_USE_FUSEDSDPA", "VLLM_GRAPH_RESERVED_MEM"}
)
FORK_PREFIXES = (
    "VLLM_ASCEND_",
    "VLLM_HPU_",
    "VLLM_NEURON_",
    "VLLM_PROMPT_BS_",
    "VLLM_PROMPT_SEQ_",
    "VLLM_DECODE_BS_",
    "VLLM_DECODE_BLOCK_",
    "VLLM_DECODE_SEQ_",
    "VLLM_GRAPH_",
    "VLLM_CONTIGUOUS_PA",
    "VLLM_SPYRE_",
    "VLLM_MLU_",
    "VLLM_METAL_",
    "VLLM_KUNLUN_",
    "VLLM_OMNI_",
    "VLLM_GAUDI_",
)
