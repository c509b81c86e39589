"""How true the load generator's figures are on this machine: its own, against those of a server
that knows what it did."""

from __future__ import annotations

import asyncio
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from subprocess import PIPE

import msgspec

from gpu_dash.load.driver import FinishedStep, LoadDriver
from gpu_dash.load.mock_server import Truth
from gpu_dash.model.errors import AgentError
from gpu_dash.model.events import Event, LoadTick
from gpu_dash.model.histogram import Histogram
from gpu_dash.model.load import LoadPlan, Outcome, Target

STREAMS = (8, 64, 256)
ROUNDS = 4
TOKENS = 64
_START_TIMEOUT_S = 10.0
_TRUTH_TIMEOUT_S = 10.0


class ErrorRow(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured with so many streams. An error is the client's percentile less the
    server's own of the same requests."""

    streams: int
    requests_ok: int
    requests_failed: int
    output_tokens_per_s: float
    ttft_p50_s: float
    """The server's own."""
    ttft_error_p50_s: float
    ttft_error_p99_s: float
    gap_p50_s: float
    """The server's own."""
    gap_error_p50_s: float
    gap_error_p99_s: float
    loop_lag_s: float
    """The worst lateness of the workers' timers."""
    cpu_s_per_1000_tokens: float
    client_bound: bool


async def measure(streams: int, *, rounds: int = ROUNDS, workers: int = 1) -> ErrorRow:
    """Load a server in the package with so many streams that all begin at once.

    Args:
        streams: requests in flight.
        rounds: requests of each stream.
        workers: load processes.

    Raises:
        AgentError: the server or a load worker does not come up.
    """
    ticks: list[LoadTick] = []
    finished: list[FinishedStep] = []

    def take(event: Event) -> None:
        if isinstance(event, LoadTick):
            ticks.append(event)

    plan = LoadPlan(
        ramp=(streams,), requests=rounds * streams, output_tokens=TOKENS, prompt_tokens=16
    )
    async with _mock_server() as url:
        driver = LoadDriver(take, finished.append, workers=workers)
        driver.set_target(Target(base_url=url, model="mock"))
        try:
            await driver.start()
            driver.start_ramp(plan)
            await driver.finished()
        finally:
            await driver.close()
        truth = await asyncio.to_thread(_ask_truth, url)
    return _row(streams, finished[0], ticks, truth)


@asynccontextmanager
async def _mock_server() -> AsyncIterator[str]:
    """The base URL of a server that ends with the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "gpu_dash.load.mock_server", stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}"
    except (TimeoutError, ValueError):
        raise AgentError("the server of the self-test did not come up") from None
    finally:
        process.stdin.close()
        await process.wait()


def _ask_truth(url: str) -> Truth:
    with urllib.request.urlopen(f"{url}/truth", timeout=_TRUTH_TIMEOUT_S) as page:
        return msgspec.json.decode(page.read(), type=Truth)


def _row(streams: int, step: FinishedStep, ticks: list[LoadTick], truth: Truth) -> ErrorRow:
    ttft = Histogram()
    for request in step.requests:
        if request.ttft_s is not None:
            ttft.add(request.ttft_s)
    tokens = sum(request.output_tokens for request in step.requests)
    ok = sum(request.outcome is Outcome.OK for request in step.requests)
    cpu_s = sum(tick.cpu_percent / 100 * tick.interval_s for tick in ticks)
    return ErrorRow(
        streams=streams,
        requests_ok=ok,
        requests_failed=len(step.requests) - ok,
        output_tokens_per_s=tokens / (step.closed_at - step.opened_at),
        ttft_p50_s=_percentile(truth.ttft, 50),
        ttft_error_p50_s=_percentile(ttft.counts, 50) - _percentile(truth.ttft, 50),
        ttft_error_p99_s=_percentile(ttft.counts, 99) - _percentile(truth.ttft, 99),
        gap_p50_s=_percentile(truth.gaps, 50),
        gap_error_p50_s=_percentile(step.gaps, 50) - _percentile(truth.gaps, 50),
        gap_error_p99_s=_percentile(step.gaps, 99) - _percentile(truth.gaps, 99),
        loop_lag_s=max((tick.loop_lag_s for tick in ticks), default=0.0),
        cpu_s_per_1000_tokens=1000 * cpu_s / max(1, tokens),
        client_bound=step.client_bound,
    )


def _percentile(counts: dict[int, int], percent: float) -> float:
    histogram = Histogram()
    histogram.merge(counts)
    return histogram.percentile(percent) or 0.0
