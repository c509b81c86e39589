"""How vLLM's flags are written: short names, which take no value, which take several.

Read from the parser of vLLM 0.32 (and its predecessors for flags that are gone).
"""

from __future__ import annotations

SHORT_NAMES = {
    "O": "optimization-level",
    "ac": "attention-config",
    "asc": "api-server-count",
    "cc": "compilation-config",
    "dc": "diffusion-config",
    "dcp": "decode-context-parallel-size",
    "dp": "data-parallel-size",
    "dpa": "data-parallel-address",
    "dpb": "data-parallel-backend",
    "dpe": "data-parallel-external-lb",
    "dph": "data-parallel-hybrid-lb",
    "dpl": "data-parallel-size-local",
    "dpm": "data-parallel-multi-port-external-lb",
    "dpn": "data-parallel-rank",
    "dpp": "data-parallel-rpc-port",
    "dpr": "data-parallel-start-rank",
    "ep": "enable-expert-parallel",
    "n": "nnodes",
    "pcp": "prefill-context-parallel-size",
    "pp": "pipeline-parallel-size",
    "q": "quantization",
    "r": "node-rank",
    "sc": "speculative-config",
    "tp": "tensor-parallel-size",
}
"""``-tp`` and the like → the long name."""

_BOOLEAN = frozenset(
    [
        "aggregate-engine-logging",
        "allow-credentials",
        "allow-deprecated-quantization",
        "async-scheduling",
        "calculate-kv-scales",
        "cohere-is-reasoning-model",
        "cudagraph-metrics",
        "data-parallel-external-lb",
        "data-parallel-hybrid-lb",
        "data-parallel-multi-port-external-lb",
        "dcp-q-replicate",
        "disable-async-output-proc",
        "disable-cascade-attn",
        "disable-chunked-mm-input",
        "disable-custom-all-reduce",
        "disable-fastapi-docs",
        "disable-frontend-multiprocessing",
        "disable-hybrid-kv-cache-manager",
        "disable-log-requests",
        "disable-log-stats",
        "disable-logprobs-during-spec-decoding",
        "disable-mm-preprocessor-cache",
        "disable-nccl-for-dp-synchronization",
        "disable-sliding-window",
        "disable-uvicorn-access-log",
        "enable-auto-tool-choice",
        "enable-batch-sharded-sampling",
        "enable-chunked-prefill",
        "enable-cumem-allocator",
        "enable-dbo",
        "enable-elastic-ep",
        "enable-ep-weight-filter",
        "enable-eplb",
        "enable-expert-parallel",
        "enable-fault-tolerance",
        "enable-flash-late-interaction",
        "enable-flashinfer-autotune",
        "enable-force-include-usage",
        "enable-hc-sp",
        "enable-layerwise-nvtx-tracing",
        "enable-log-deltas",
        "enable-log-outputs",
        "enable-log-requests",
        "enable-logging-iteration-details",
        "enable-lora",
        "enable-lora-bias",
        "enable-mamba-cache-stochastic-rounding",
        "enable-mamba-shared-prefix-checkpoint",
        "enable-mfu-metrics",
        "enable-mixed-moe-lora-format",
        "enable-mm-embeds",
        "enable-moe-shared-loras",
        "enable-multimodal-encoder-data-parallel",
        "enable-nccl-comm-suspend",
        "enable-offline-docs",
        "enable-per-request-metrics",
        "enable-prefix-caching",
        "enable-prompt-adapter",
        "enable-prompt-embeds",
        "enable-prompt-tokens-details",
        "enable-reasoning",
        "enable-request-id-headers",
        "enable-return-routed-experts",
        "enable-scale-out",
        "enable-server-load-tracking",
        "enable-shm-tensor-arena",
        "enable-sleep-mode",
        "enable-ssl-refresh",
        "enable-tokenizer-info-endpoint",
        "enable-tower-connector-lora",
        "enable-trace-replay",
        "enforce-eager",
        "engine-use-ray",
        "eplb-log-balancedness",
        "exclude-tools-when-tool-choice-none",
        "expand-tools-even-if-tool-choice-none",
        "fail-on-environ-validation",
        "fully-sharded-loras",
        "grpc",
        "guided-decoding-disable-additional-properties",
        "guided-decoding-disable-any-whitespace",
        "guided-decoding-disable-fallback",
        "headless",
        "interleave-mm-strings",
        "jit-monitor-verbose",
        "kv-cache-metrics",
        "kv-sharing-fast-prefill",
        "language-model-only",
        "log-error-stack",
        "long-prefill-token-threshold-adaptive",
        "mm-device-do-normalize",
        "mm-encoder-only",
        "multi-step-stream-outputs",
        "numa-bind",
        "ray-workers-use-nsight",
        "return-sampling-mask",
        "return-tokens-as-token-ids",
        "scheduler-reserve-full-isl",
        "skip-mm-profiling",
        "skip-tokenizer-init",
        "sleep-mode-offload-cudagraph",
        "specialize-active-lora",
        "speculative-disable-mqa-scorer",
        "swa-bounded-replay",
        "tokens-only",
        "trust-remote-code",
        "trust-request-chat-template",
        "trust-request-mm-kwargs",
        "use-fp64-gumbel",
        "use-gpu-for-pooling-score",
        "use-padding-aware-scheduling",
        "use-replayssm",
        "use-tqdm-on-load",
        "use-v2-block-manager",
        "worker-use-ray",
    ]
)
_SEVERAL = frozenset(
    [
        "allowed-media-domains",
        "collect-detailed-traces",
        "cpu-offload-params",
        "cudagraph-capture-sizes",
        "ignore-patterns",
        "kv-cache-dtype-skip-layers",
        "logits-processors",
        "lora-modules",
        "lora-target-modules",
        "numa-bind-cpus",
        "numa-bind-nodes",
        "offload-params",
        "served-model-name",
        "sleep-preserve-parameter-names",
    ]
)


def is_boolean(name: str) -> bool:
    """Whether a flag stands without a value, in its positive form or in one that denies it."""
    return name in _BOOLEAN or name.startswith("no-") or name in _PAIR_OF


def positive_form(name: str) -> str:
    """The name that the parser defines: ``no-enable-x``, ``disable-x`` → ``enable-x``."""
    bare = name.removeprefix("no-")
    return bare if bare in _BOOLEAN else _PAIR_OF.get(bare, bare)


def takes_several(name: str) -> bool:
    """Whether a flag takes all the values that follow it."""
    return name in _SEVERAL


def _opposite(name: str) -> str | None:
    for one, other in (("enable-", "disable-"), ("disable-", "enable-")):
        if name.startswith(one):
            return other + name.removeprefix(one)
    return None


_PAIR_OF = {opposite: name for name in _BOOLEAN if (opposite := _opposite(name)) is not None}
