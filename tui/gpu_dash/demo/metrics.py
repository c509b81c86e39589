"""The ``/metrics`` page: vLLM's families in Prometheus' text format."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import accumulate

from gpu_dash.demo.engine import Engine
from gpu_dash.demo.stats import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BLOCK_TOKENS = 16
"""Tokens in a block of the KV cache."""


class MetricsPage:
    """Writes the page for one server."""

    def __init__(self, engine: Engine, model_name: str) -> None:
        self._engine = engine
        self._labels = {"engine": "0", "model_name": model_name}
        self._started = time.time()
        self._responses: dict[tuple[str, str, str], int] = {}

    def count_response(self, handler: str, method: str, status: int) -> None:
        """Count an HTTP answer in ``http_requests_total``."""
        key = (handler, method, f"{status // 100}xx")
        self._responses[key] = self._responses.get(key, 0) + 1

    def render(self) -> bytes:
        """The page as it is now."""
        return ("\n".join(self._lines()) + "\n").encode()

    def _lines(self) -> Iterator[str]:
        yield from _family(
            "process_start_time_seconds",
            "gauge",
            "Start time of the process since unix epoch in seconds.",
            [({}, self._started)],
        )
        yield from self._gauges()
        yield from self._counters()
        yield from self._histograms()
        yield from _family(
            "http_requests_total",
            "counter",
            "Total number of requests by method, status and handler.",
            [
                ({"handler": handler, "method": method, "status": status}, count)
                for (handler, method, status), count in self._responses.items()
            ],
        )

    def _gauges(self) -> Iterator[str]:
        engine = self._engine
        yield from self._one(
            "vllm:num_requests_running",
            "gauge",
            "Number of requests in model execution batches.",
            len(engine.running),
        )
        yield from self._one(
            "vllm:num_requests_waiting",
            "gauge",
            "Number of requests waiting to be processed.",
            len(engine.waiting),
        )
        yield from self._by(
            "vllm:num_requests_waiting_by_reason",
            "gauge",
            "Number of waiting requests by reason.",
            "reason",
            {"capacity": len(engine.waiting), "deferred": 0},
        )
        yield from self._one(
            "vllm:kv_cache_usage_perc",
            "gauge",
            "KV-cache usage. 1 means 100 percent usage.",
            engine.kv_cache_usage,
        )
        tokens = engine.capacity.kv_cache_tokens
        config = {
            "block_size": str(BLOCK_TOKENS),
            "cache_dtype": "auto",
            "enable_prefix_caching": "False",
            "kv_cache_size_tokens": str(tokens),
            "num_gpu_blocks": str(tokens // BLOCK_TOKENS),
        }
        yield from _family(
            "vllm:cache_config_info",
            "gauge",
            "Information of the LLMEngine CacheConfig",
            [({**self._labels, **config}, 1)],
        )

    def _counters(self) -> Iterator[str]:
        stats = self._engine.stats
        for name, description, value in (
            ("prompt_tokens", "Number of prefill tokens processed.", stats.prompt_tokens),
            (
                "generation_tokens",
                "Number of generation tokens processed.",
                stats.generation_tokens,
            ),
            (
                "num_preemptions",
                "Cumulative number of preemption from the engine.",
                stats.preemptions,
            ),
            (
                "prefix_cache_queries",
                "Prefix cache queries, in terms of number of queried tokens.",
                0,
            ),
            ("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", 0),
        ):
            yield from self._one(f"vllm:{name}_total", "counter", description, value)
        yield from self._by(
            "vllm:request_success_total",
            "counter",
            "Count of successfully processed requests.",
            "finished_reason",
            stats.finished,
        )

    def _histograms(self) -> Iterator[str]:
        stats = self._engine.stats
        for name, description, histogram in (
            (
                "iteration_tokens_total",
                "Histogram of number of tokens per engine_step.",
                stats.iteration_tokens,
            ),
            (
                "time_to_first_token_seconds",
                "Histogram of time to first token in seconds.",
                stats.time_to_first_token,
            ),
            (
                "inter_token_latency_seconds",
                "Histogram of inter-token latency in seconds.",
                stats.inter_token_latency,
            ),
            (
                "e2e_request_latency_seconds",
                "Histogram of e2e request latency in seconds.",
                stats.e2e_request_latency,
            ),
            (
                "request_queue_time_seconds",
                "Histogram of time spent in WAITING phase for request.",
                stats.request_queue_time,
            ),
            (
                "request_prefill_time_seconds",
                "Histogram of time spent in PREFILL phase for request.",
                stats.request_prefill_time,
            ),
            (
                "request_decode_time_seconds",
                "Histogram of time spent in DECODE phase for request.",
                stats.request_decode_time,
            ),
            (
                "request_prompt_tokens",
                "Number of prefill tokens processed.",
                stats.request_prompt_tokens,
            ),
            (
                "request_generation_tokens",
                "Number of generation tokens processed.",
                stats.request_generation_tokens,
            ),
        ):
            yield from self._histogram(f"vllm:{name}", description, histogram)

    def _one(self, name: str, kind: str, description: str, value: float) -> Iterator[str]:
        return _family(name, kind, description, [(self._labels, value)])

    def _by(
        self, name: str, kind: str, description: str, label: str, values: Mapping[str, float]
    ) -> Iterator[str]:
        samples = [({**self._labels, label: key}, value) for key, value in values.items()]
        return _family(name, kind, description, samples)

    def _histogram(self, name: str, description: str, histogram: Histogram) -> Iterator[str]:
        yield from _heading(name, "histogram", description)
        bounds = [*map(str, histogram.bounds), "+Inf"]
        for bound, count in zip(bounds, accumulate(histogram.counts), strict=True):
            yield _sample(f"{name}_bucket", {**self._labels, "le": bound}, count)
        yield _sample(f"{name}_count", self._labels, histogram.count)
        yield _sample(f"{name}_sum", self._labels, histogram.sum)


def _family(
    name: str, kind: str, description: str, samples: list[tuple[dict[str, str], float]]
) -> Iterator[str]:
    yield from _heading(name, kind, description)
    for labels, value in samples:
        yield _sample(name, labels, value)


def _heading(name: str, kind: str, description: str) -> Iterator[str]:
    yield f"# HELP {name} {description}"
    yield f"# TYPE {name} {kind}"


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    if not labels:
        return f"{name} {float(value)}"
    pairs = ",".join(f'{label}="{_escape(text)}"' for label, text in sorted(labels.items()))
    return f"{name}{{{pairs}}} {float(value)}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
