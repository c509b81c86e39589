"""What the server says of itself while it runs: statistics, a stall notice, and chatter."""

from __future__ import annotations

import asyncio

from gpu_dash.demo.log import API_SERVER, ENGINE_CORE, ServerLog, worker
from gpu_dash.demo.simulation import EngineState, Simulation

_STALL_NOTICE_S = 60.0
_CHATTER_TICK_S = 0.05


async def tell_statistics(log: ServerLog, simulation: Simulation, interval_s: float) -> None:
    """vLLM's periodic line. Without a token it says zero once and is then silent, busy or not."""
    loop = asyncio.get_running_loop()
    engine, stats = simulation.engine, simulation.engine.stats
    prompt_tokens, generation_tokens = stats.prompt_tokens, stats.generation_tokens
    had_moved = False
    due = loop.time()
    while True:
        due += interval_s
        await asyncio.sleep(due - loop.time())
        read = stats.prompt_tokens - prompt_tokens
        made = stats.generation_tokens - generation_tokens
        prompt_tokens, generation_tokens = stats.prompt_tokens, stats.generation_tokens
        moved = bool(read or made)
        if moved or had_moved:
            preemptions = f", Preemptions: {stats.preemptions}" if stats.preemptions else ""
            log.record(
                API_SERVER,
                "INFO",
                "loggers.py:310",
                f"Engine 000: Avg prompt throughput: {read / interval_s:.1f} tokens/s, "
                f"Avg generation throughput: {made / interval_s:.1f} tokens/s, "
                f"Running: {len(engine.running)} reqs, Waiting: {len(engine.waiting)} reqs"
                f"{preemptions}, GPU KV cache usage: {engine.kv_cache_usage:.1%}, "
                "Prefix cache hit rate: 0.0%",
            )
        had_moved = moved


async def tell_stalls(log: ServerLog, simulation: Simulation) -> None:
    """The line that the engine repeats while a worker does not answer."""
    stalled_s = 0.0
    while True:
        await asyncio.sleep(1.0)
        stalled = simulation.state is EngineState.FROZEN and not simulation.engine.idle
        stalled_s = stalled_s + 1.0 if stalled else 0.0
        if stalled_s >= _STALL_NOTICE_S:
            stalled_s = 0.0
            log.record(
                ENGINE_CORE,
                "INFO",
                "shm_broadcast.py:705",
                "No available shared memory broadcast block found in 60 seconds. This typically "
                "happens when some processes are hanging or doing some time-consuming work "
                "(e.g. compilation, weight/kv cache quantization).",
            )


async def chatter(log: ServerLog, ranks: int, lines_per_s: float) -> None:
    """Harmless lines at a steady rate, to see who can keep up with them."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    written = 0
    while True:
        await asyncio.sleep(_CHATTER_TICK_S)
        due = int((loop.time() - began) * lines_per_s)
        log.raw_lines(
            log.format(
                worker(number % ranks, ranks),
                "INFO",
                "gpu_model_runner.py:3021",
                f"step {number}: batch padded to the next captured size",
            )
            for number in range(written, due)
        )
        written = due
