"""vLLM's ``/metrics`` page → :class:`~gpu_dash.model.server.ServerMetrics`.

Each quantity is looked up by a list of names, newest first: vLLM renames them
(``gpu_cache_usage_perc`` → ``kv_cache_usage_perc``), and a name that is absent is a missing
value, not 0. Values of several engines (data parallel) are summed; the KV cache's share is the
mean, as each engine has its own cache.
"""

from __future__ import annotations

from gpu_dash.model.server import ServerMetrics

_NAMES: dict[str, tuple[str, ...]] = {
    "running_requests": ("vllm:num_requests_running",),
    "waiting_requests": ("vllm:num_requests_waiting",),
    "kv_cache_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "prompt_tokens_total": ("vllm:prompt_tokens_total",),
    "generation_tokens_total": ("vllm:generation_tokens_total",),
    "preemptions_total": ("vllm:num_preemptions_total",),
    "iterations_total": ("vllm:iteration_tokens_total_count",),
    "prefix_cache_queries_total": (
        "vllm:prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_queries_total",
    ),
    "prefix_cache_hits_total": (
        "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits_total",
    ),
}
_WANTED = {name for names in _NAMES.values() for name in names}


def parse_metrics(page: str) -> ServerMetrics:
    """The numbers that gpu-dash shows, from a page in Prometheus' text format.

    Lines of other families are dropped before the parser sees them: a vLLM page has about a
    thousand, mostly histogram buckets.
    """
    from prometheus_client.parser import text_string_to_metric_families

    wanted = [line for line in page.splitlines() if _sample_name(line) in _WANTED]
    values: dict[str, list[float]] = {}
    for family in text_string_to_metric_families("\n".join(wanted) + "\n"):
        for sample in family.samples:
            values.setdefault(sample.name, []).append(sample.value)

    def total(field: str) -> float | None:
        for name in _NAMES[field]:
            if name in values:
                return sum(values[name])
        return None

    def count(field: str) -> int | None:
        value = total(field)
        return None if value is None else int(value)

    usage = total("kv_cache_usage")
    engines = next((len(values[n]) for n in _NAMES["kv_cache_usage"] if n in values), 1)
    return ServerMetrics(
        running_requests=count("running_requests"),
        waiting_requests=count("waiting_requests"),
        kv_cache_usage=None if usage is None else usage / engines,
        prompt_tokens_total=total("prompt_tokens_total"),
        generation_tokens_total=total("generation_tokens_total"),
        preemptions_total=total("preemptions_total"),
        iterations_total=total("iterations_total"),
        prefix_cache_queries_total=total("prefix_cache_queries_total"),
        prefix_cache_hits_total=total("prefix_cache_hits_total"),
    )


def _sample_name(line: str) -> str:
    end = min((i for i in (line.find("{"), line.find(" ")) if i >= 0), default=len(line))
    return line[:end]
