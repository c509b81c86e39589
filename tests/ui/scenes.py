"""Scenes: events as an agent would send them, made up and the same each time."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpu_dash.model import events as ev
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuInfo, GpuSample, GpuSourceState, GpuVendor, ThrottleKind
from gpu_dash.model.load import LoadMode, LoadPlan, LoadState, StepResult
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.model.server import ServerMetrics, ServerState, ServerStatus

GIB = 1024**3
RAMP = (1, 4, 8, 16, 32)
STEP_S = 20.0
WARMUP_S = 3.0
MODEL = "acme/model-32b"


def gpu_infos(cards: int, name: str = "NVIDIA H200") -> tuple[GpuInfo, ...]:
    """Cards with an H200's limits."""
    return tuple(
        GpuInfo(
            gpu=gpu,
            name=name,
            uuid=f"GPU-{gpu:08d}",
            vendor=GpuVendor.NVIDIA,
            max_operating_temperature_celsius=87.0,
            slowdown_temperature_celsius=89.0,
            shutdown_temperature_celsius=95.0,
            sm_clock_max_mhz=1980.0,
            memory_total_bytes=141 * GIB,
        )
        for gpu in range(cards)
    )


def gpu_sample(gpu: int, **changes: object) -> GpuSample:
    """A busy card that is well."""
    values: dict[str, object] = {
        "temperature_celsius": 62.0 + gpu,
        "headroom_celsius": 25.0 - gpu,
        "power_watts": 560.0 + 5 * gpu,
        "power_limit_watts": 700.0,
        "sm_clock_mhz": 1905.0 - 15 * gpu,
        "utilization_percent": 98.0,
        "memory_used_bytes": 121 * GIB,
        "memory_total_bytes": 141 * GIB,
    }
    return GpuSample(gpu=gpu, **(values | changes))  # type: ignore[arg-type]


def began(at: float = 0.0, session: str = "20260101-120000-demo") -> ev.SessionBegan:
    """A session that starts at ``at``."""
    return ev.SessionBegan(
        at=at, session=session, folder="sessions/demo", anchor=ClockAnchor(at, 1_750_000_000.0),
        label="demo",
    )  # fmt: skip


def server(state: ServerState, at: float, **more: object) -> ev.ServerChanged:
    """A change of the server's state."""
    values: dict[str, object] = {"model": MODEL, "base_url": "http://127.0.0.1:8000", "since": at}
    status = ServerStatus(state=state, **(values | more))  # type: ignore[arg-type]
    return ev.ServerChanged(at=at, status=status)


def thermal_and_cap_scene(at: float = 100.0) -> list[ev.Event]:
    """Eight busy cards; card 3 in thermal slowdown, card 5 merely at its power cap."""
    samples = [gpu_sample(gpu) for gpu in range(8)]
    samples[3] = gpu_sample(
        3, temperature_celsius=93.0, headroom_celsius=-6.0, sm_clock_mhz=1005.0,
        throttle_reasons=("sw_thermal", "hw_thermal"),
    )  # fmt: skip
    samples[5] = gpu_sample(5, power_watts=699.5, throttle_reasons=("sw_power_cap",))
    return [
        began(at - 60),
        ev.GpuSourceChanged(
            at=at - 60, source="nvml", state=GpuSourceState.LIVE, gpus=gpu_infos(8)
        ),
        server(ServerState.READY, at - 30),
        ev.ThrottleBegan(
            at=at - 12, gpu=3, kind=ThrottleKind.THERMAL, reasons=("sw_thermal", "hw_thermal"),
            temperature_celsius=93.0, sm_clock_mhz=1005.0, sm_clock_max_mhz=1980.0,
        ),
        ev.GpuSamples(at=at, samples=tuple(samples)),
    ]  # fmt: skip


def ramp_scene(cards: int = 8, seconds: float = 110.0) -> Iterator[ev.Event]:
    """A launch and a ramp; the last card overheats at the fourth step and the throughput falls."""
    yield began()
    yield ev.GpuSourceChanged(
        at=0.0, source="sim", state=GpuSourceState.LIVE, gpus=gpu_infos(cards)
    )
    plan = LoadPlan(ramp=RAMP, step_s=STEP_S, warmup_s=WARMUP_S)
    yield ev.LoadChanged(at=0.0, state=LoadState.IDLE, plan=plan)
    yield server(ServerState.STARTING, 0.1, stage="loading weights", stage_since=0.1,
                 stage_progress=0.4)  # fmt: skip
    yield server(ServerState.READY, 5.0, ready_after_s=5.0)
    line, tokens, hot_since = 0, 0.0, 0.0
    ticks = int(seconds * 2)
    for tick in range(ticks):
        at = tick / 2 + 0.25
        step, within = divmod(at - 6.0, STEP_S + WARMUP_S)
        index = min(int(step), len(RAMP) - 1)
        runs = at >= 6.0 and step < len(RAMP)
        concurrency = RAMP[index] if runs else 0
        throttles = runs and index >= 3 and within > 8.0 and index < 4
        rate = 95.0 * concurrency**0.85 * (0.7 if throttles else 1.0)
        yield ev.GpuSamples(at=at, samples=tuple(
            _ramp_card(gpu, at, cards, concurrency, throttles=throttles) for gpu in range(cards)
        ))  # fmt: skip
        if throttles and not hot_since:
            hot_since = at
            yield ev.ThrottleBegan(
                at=at, gpu=cards - 1, kind=ThrottleKind.THERMAL, reasons=("sw_thermal",),
                temperature_celsius=88.0, sm_clock_mhz=1170.0, sm_clock_max_mhz=1980.0,
            )  # fmt: skip
            yield ev.Finding(
                at=at, kind="throttle_begin", severity=Severity.ERROR, source="gpu",
                subject=f"gpu:{cards - 1}", message="thermal slowdown at 88 °C, clock 1980 → 1170",
                first_check="air flow and fan of this card and its neighbour",
            )  # fmt: skip
        if hot_since and not throttles:
            yield ev.ThrottleEnded(
                at=at, gpu=cards - 1, kind=ThrottleKind.THERMAL, began_at=hot_since,
                peak_temperature_celsius=90.0, lowest_sm_clock_mhz=1150.0,
            )  # fmt: skip
            hot_since = 0.0
        if runs:
            yield from _ramp_load(at, index, within, concurrency, rate, plan)
        tokens += rate / 2
        yield ev.ServerMetricsRead(at=at, metrics=ServerMetrics(
            running_requests=concurrency, waiting_requests=0,
            kv_cache_usage=0.02 * concurrency, generation_tokens_total=tokens,
        ))  # fmt: skip
        lines = []
        for _ in range(2):
            line += 1
            lines.append(LogLine(line, _log_text(line, rate)))
        yield ev.LogLines(at=at, lines=tuple(lines))


def _ramp_card(gpu: int, at: float, cards: int, concurrency: int, *, throttles: bool) -> GpuSample:
    share = math.log2(concurrency + 1) / 6
    hot = gpu == cards - 1
    temperature = 38 + 40 * share + 2 * math.sin(at / 7 + gpu) + (10 if hot else 0) * share
    slow = hot and throttles
    if slow:
        temperature = max(temperature, 88.0)
    return gpu_sample(
        gpu,
        temperature_celsius=round(temperature),
        headroom_celsius=87.0 - round(temperature),
        power_watts=120 + 540 * share + 12 * math.sin(at + gpu),
        sm_clock_mhz=1170.0 if slow else 1980.0 - 90 * share - 15 * (int(at + gpu) % 3),
        utilization_percent=float(min(100, round(100 * min(1.0, share * 1.5)))),
        throttle_reasons=("sw_thermal",) if slow else (),
    )


def _ramp_load(
    at: float, index: int, within: float, concurrency: int, rate: float, plan: LoadPlan
) -> Iterator[ev.Event]:
    opens = at - within + WARMUP_S
    if within < 0.5:
        if index > 0:
            yield _result(index - 1, opens - STEP_S - WARMUP_S)
        yield ev.LoadChanged(
            at=at, state=LoadState.WARMUP, mode=LoadMode.RAMP, concurrency=concurrency,
            step=index + 1, window_opens_at=opens, plan=plan,
        )  # fmt: skip
    elif WARMUP_S <= within < WARMUP_S + 0.5:
        yield ev.LoadChanged(
            at=at, state=LoadState.RUNNING, mode=LoadMode.RAMP, concurrency=concurrency,
            step=index + 1, window_opens_at=opens, window_closes_at=opens + STEP_S, plan=plan,
        )  # fmt: skip
        yield ev.StepBegan(at=at, step=index + 1, concurrency=concurrency, first_sent_at=at)
    yield ev.LoadTick(
        at=at, in_flight=concurrency, interval_s=0.5, output_tokens=round(rate / 2),
        requests_ok=1, ttft_p50_s=0.04 + 0.004 * concurrency * (2.0 if rate < 1000 else 1.0),
        itl_p50_s=0.012, cpu_percent=3.0,
    )  # fmt: skip


def _result(index: int, opened: float) -> ev.StepEnded:
    concurrency = RAMP[index]
    return ev.StepEnded(
        at=opened + STEP_S + 1,
        result=StepResult(
            step=index + 1, concurrency=concurrency, time_s=opened, duration_s=STEP_S,
            elapsed_s=STEP_S + WARMUP_S, requests_ok=12 * concurrency,
            output_tokens=2000 * concurrency, output_tokens_per_s=95.0 * concurrency**0.85,
            ttft_p50_s=0.04 + 0.004 * concurrency, ttft_p90_s=0.08, ttft_p99_s=0.11,
            itl_p50_s=0.012, peak_temperature_celsius=60.0 + 5 * index,
            throttle_thermal_s=0.0,
        ),
    )  # fmt: skip


def _log_text(line: int, rate: float) -> str:
    if line % 7 == 0:
        return (
            "(APIServer pid=4711) INFO 01-01 12:00:00 [loggers.py:259] Engine 000: Avg prompt "
            f"throughput: {rate * 2:.1f} tokens/s, Avg generation throughput: {rate:.1f} tokens/s, "
            "Running: 16 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.1%"
        )
    return (
        f'(APIServer pid=4711) INFO:     127.0.0.1:{40000 + line % 97} - "POST /v1/completions '
        'HTTP/1.1" 200 OK'
    )
