"""A memory plan in words, for a terminal: pairs of a label and what there is to say."""

from __future__ import annotations

from gpu_dash.analysis.memory.plan import GIB, MemoryPlan, PlanRequest
from gpu_dash.analysis.memory.shape import ModelShape
from gpu_dash.analysis.memory.weights import parameters


def plan_headline(shape: ModelShape, request: PlanRequest) -> str:
    """What was put on which cards."""
    split = request.split
    return (
        f"{parameters(shape) / 1e9:.1f}B parameters on {request.gpus} x "
        f"{request.gpu_memory_bytes / GIB:.1f} GiB, TP {split.tensor} PP {split.pipeline} "
        f"DP {split.data}, utilisation {request.utilization:.2f}"
    )


def plan_facts(request: PlanRequest, plan: MemoryPlan) -> list[tuple[str, str]]:
    """The numbers, in the order in which memory is given away."""
    cache = plan.cache
    facts = [
        ("weights", f"{plan.weights_bytes_per_gpu / GIB:8.2f} GiB on each GPU"),
        ("activations etc.", f"{plan.activation_bytes_per_gpu / GIB:8.2f} GiB, estimated"),
        (
            "KV cache",
            f"{plan.kv_bytes_per_gpu / GIB:8.2f} GiB, {cache.bytes_per_token:,} bytes a token "
            "on each GPU",
        ),
        (
            "KV tokens",
            f"{cache.tokens:,}, {cache.max_concurrency:.2f}x requests of "
            f"{plan.max_model_len:,} tokens",
        ),
        ("longest context", f"{plan.longest_model_len:,} tokens"),
        ("possible TP", ", ".join(map(str, plan.tensor_parallel_sizes))),
    ]
    if request.concurrency is not None:
        peak = f"{plan.peak_bytes_per_gpu / GIB:8.2f} GiB at {request.concurrency} requests"
        facts.append(("peak", f"{peak} of full length"))
    return facts
