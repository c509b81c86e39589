"""A step's requests and readings as one row of ``steps.csv``.

Throughput counts tokens by when they arrived, latency counts requests by when they were sent:

* ``output_tokens_per_s``: the tokens of *all* requests of the step that arrived inside its
  window, by the window's length;
* ``prompt_tokens_per_s``: likewise, the prompts whose first token came inside the window, for
  that is when their prefill was done;
* latencies and goodput: the requests that were sent inside the window (``counted``) and came out
  ``ok``; a failure is never a fast success;
* ``elapsed_s``: from the step's first send to its last token, start and tail included, so
  ``output_tokens / elapsed_s`` is all tokens by all time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpu_dash.analysis.percentile import percentile
from gpu_dash.analysis.step_gpus import StepGpus
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.histogram import Histogram
from gpu_dash.model.load import Outcome, RequestRecord, Slo, StepResult
from gpu_dash.model.offered import total


def summarize_step(
    *,
    step: int,
    concurrency: int | None,
    requests: Sequence[RequestRecord],
    opened_at: float,
    closed_at: float,
    anchor: ClockAnchor,
    gaps: Mapping[int, int],
    request_rate: float | None = None,
    gpus: StepGpus | None = None,
    idle_watts: float | None = None,
    slo: Slo | None = None,
    client_bound: bool = False,
) -> StepResult:
    """What a step came to.

    Args:
        step: its number in the session.
        concurrency: requests in flight that it asked for; ``None`` for an open loop.
        requests: every request of the step, however it ended.
        opened_at: monotonic moment at which the window opened.
        closed_at: monotonic moment at which it closed.
        anchor: the session's.
        gaps: gaps between tokens of the counted requests, as buckets of
            :mod:`gpu_dash.model.histogram`.
        request_rate: requests per second that an open loop asked for.
        gpus: what the cards did in the window.
        idle_watts: what the same cards draw without load; ``None`` if that was not seen.
        slo: what a request must meet to count as goodput.
        client_bound: the client was the limit.
    """
    duration_s = closed_at - opened_at
    judged = [r for r in requests if r.counted and r.outcome is Outcome.OK]
    ok = sum(1 for r in requests if r.outcome is Outcome.OK)
    tokens_in_window = sum(r.tokens_in_window for r in requests)
    histogram = Histogram()
    histogram.merge(gaps)
    ttft = [r.ttft_s for r in judged if r.ttft_s is not None]
    tpot = [r.tpot_s for r in judged if r.tpot_s is not None]
    e2e = [r.e2e_s for r in judged if r.e2e_s is not None]
    gpus = gpus or StepGpus()
    return StepResult(
        step=step,
        concurrency=concurrency,
        request_rate=request_rate,
        time_s=anchor.time_s(opened_at),
        duration_s=duration_s,
        elapsed_s=_elapsed_s(requests, opened_at, closed_at),
        requests_ok=ok,
        requests_failed=len(requests) - ok,
        output_tokens=sum(r.output_tokens for r in requests),
        output_tokens_per_s=_per(tokens_in_window, duration_s) or 0.0,
        prompt_tokens_per_s=_per(_prompt_tokens(requests, opened_at, closed_at), duration_s),
        goodput_per_s=_goodput_per_s(judged, slo, duration_s),
        ttft_p50_s=percentile(ttft, 50),
        ttft_p90_s=percentile(ttft, 90),
        ttft_p99_s=percentile(ttft, 99),
        itl_p50_s=histogram.percentile(50),
        itl_p90_s=histogram.percentile(90),
        itl_p99_s=histogram.percentile(99),
        tpot_p50_s=percentile(tpot, 50),
        tpot_p90_s=percentile(tpot, 90),
        tpot_p99_s=percentile(tpot, 99),
        e2e_p50_s=percentile(e2e, 50),
        e2e_p90_s=percentile(e2e, 90),
        e2e_p99_s=percentile(e2e, 99),
        retries=sum(r.retries for r in requests),
        client_bound=client_bound,
        peak_temperature_celsius=gpus.peak_temperature_celsius,
        min_sm_clock_mhz=gpus.min_sm_clock_mhz,
        peak_memory_used_bytes=gpus.peak_memory_used_bytes,
        peak_total_power_watts=gpus.peak_total_power_watts,
        throttle_thermal_s=gpus.throttle_thermal_s,
        energy_joules=gpus.energy_joules,
        joules_per_output_token=_per(gpus.energy_joules, tokens_in_window),
        net_joules_per_output_token=_per(
            _net(gpus.energy_joules, idle_watts, duration_s), tokens_in_window
        ),
    )


def meets(request: RequestRecord, slo: Slo) -> bool:
    """Whether a request kept every limit of the SLO; one it has no value for, it did not keep,
    except the time per token of an answer of a single token."""
    if slo.ttft_s is not None and (request.ttft_s is None or request.ttft_s > slo.ttft_s):
        return False
    if slo.e2e_s is not None and (request.e2e_s is None or request.e2e_s > slo.e2e_s):
        return False
    if slo.tpot_s is None:
        return True
    if request.tpot_s is None:
        return request.output_tokens == 1
    return request.tpot_s <= slo.tpot_s


def _goodput_per_s(
    judged: Iterable[RequestRecord], slo: Slo | None, duration_s: float
) -> float | None:
    if slo is None:
        return None
    return _per(sum(1 for request in judged if meets(request, slo)), duration_s)


def _elapsed_s(requests: Sequence[RequestRecord], opened_at: float, closed_at: float) -> float:
    """First send to last token; to the window's end where no token ever came."""
    first_sent = min((r.sent for r in requests), default=opened_at)
    last_token = max((r.sent + r.e2e_s for r in requests if r.e2e_s is not None), default=closed_at)
    return last_token - first_sent


def _prompt_tokens(
    requests: Iterable[RequestRecord], opened_at: float, closed_at: float
) -> int | None:
    return total(
        r.prompt_tokens
        for r in requests
        if r.ttft_s is not None and opened_at <= r.sent + r.ttft_s <= closed_at
    )


def _net(energy_joules: float | None, idle_watts: float | None, seconds: float) -> float | None:
    if energy_joules is None or idle_watts is None:
        return None
    return max(0.0, energy_joules - idle_watts * seconds)


def _per(amount: float | None, by: float) -> float | None:
    return amount / by if amount is not None and by > 0 else None
