"""A memory plan in words, for a terminal: pairs of a label and what there is to say."""

from __future__ import annotations

from collections.abc import Sequence

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


def card_table(
    shape: ModelShape, requests: Sequence[PlanRequest], plans: Sequence[MemoryPlan]
) -> str:
    """The same launch on several types of card, one line each; what decides comes first, for a
    screen that cuts lines."""
    first = requests[0]
    split = first.split
    head = (
        f"{parameters(shape) / 1e9:.1f}B parameters on {first.gpus} cards of each type, "
        f"TP {split.tensor} PP {split.pipeline} DP {split.data}, "
        f"{plans[0].max_model_len:,} tokens a request"
    )
    titles = f"  {'card':<11}{'memory':>8}  {'':<4}{'requests':>10}{'KV tokens':>12}{'KV GiB':>9}"
    lines = [head, f"{titles}{'weights':>9}{'longest':>10}{'peak':>8}  first knob"]
    for request, plan in zip(requests, plans, strict=True):
        reason = plan.reasons[0] if plan.reasons else ""
        knob = reason.partition("1. ")[2].partition(";")[0] or reason[:60]
        line = (
            f"  {request.card:<11}{request.gpu_memory_bytes / GIB:>8.1f}  "
            f"{'fits' if plan.fits else 'NO':<4}{plan.cache.max_concurrency:>9.1f}x"
            f"{plan.cache.tokens:>12,}{plan.kv_bytes_per_gpu / GIB:>9.1f}"
            f"{plan.weights_bytes_per_gpu / GIB:>9.1f}{plan.longest_model_len:>10,}"
            f"{plan.peak_bytes_per_gpu / GIB:>8.1f}  {knob}"
        )
        lines.append(line.rstrip())
    sizes = ", ".join(map(str, plans[0].tensor_parallel_sizes))
    return "\n".join([*lines, f"  possible TP up to {first.gpus} cards: {sizes}"])
