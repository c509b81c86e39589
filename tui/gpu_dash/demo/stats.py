"""What the engine counts: vLLM's counters and histograms, without their text format."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

_TTFT_BOUNDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_ITL_BOUNDS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0),
)
_REQUEST_BOUNDS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
_STEP_TOKEN_BOUNDS = tuple(float(2**power) for power in (0, *range(3, 15)))
_REQUEST_TOKEN_BOUNDS = tuple(float(digit * 10**power) for power in range(4) for digit in (1, 2, 5))


class Histogram:
    """Counts by upper bound, as Prometheus has them: a value on a bound belongs under it."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        """One per bound and one for everything above; not cumulative."""
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self.counts)


class EngineStats:
    """Counters since the start; the engine raises them, the metrics page and the log read."""

    def __init__(self) -> None:
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.preemptions = 0
        self.finished = dict.fromkeys(("stop", "length", "abort", "error", "repetition"), 0)
        """Requests by the reason for which they ended."""
        self.iteration_tokens = Histogram(_STEP_TOKEN_BOUNDS)
        self.time_to_first_token = Histogram(_TTFT_BOUNDS)
        self.inter_token_latency = Histogram(_ITL_BOUNDS)
        self.e2e_request_latency = Histogram(_REQUEST_BOUNDS)
        self.request_queue_time = Histogram(_REQUEST_BOUNDS)
        self.request_prefill_time = Histogram(_REQUEST_BOUNDS)
        self.request_decode_time = Histogram(_REQUEST_BOUNDS)
        self.request_prompt_tokens = Histogram(_REQUEST_TOKEN_BOUNDS)
        self.request_generation_tokens = Histogram(_REQUEST_TOKEN_BOUNDS)
