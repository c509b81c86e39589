"""A synthetic session: the facts of a minute on two cards, and the way to record them."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpu_dash.analysis.step_gpus import StepGpuWindow
from gpu_dash.analysis.steps import summarize_step
from gpu_dash.model import events as ev
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuInfo, GpuSample, GpuSourceState, ThrottleKind
from gpu_dash.model.histogram import Histogram
from gpu_dash.model.load import LoadMode, LoadPlan, LoadState, Outcome, RequestRecord, Slo
from gpu_dash.model.log import Severity
from gpu_dash.model.server import ServerMetrics, ServerState, ServerStatus
from gpu_dash.record.meta import SessionMeta
from gpu_dash.record.recorder import Recorder

ANCHOR = ClockAnchor(monotonic=5000.25, utc=1_800_000_000.5)
IDLE_WATTS = 120.5
"""Of both cards."""
SLO = Slo(ttft_s=0.2, e2e_s=1.5)
CARDS = tuple(
    GpuInfo(
        gpu=gpu,
        name="Acme T100",
        uuid=f"GPU-0000{gpu}",
        slowdown_temperature_celsius=89.0,
        sm_clock_max_mhz=1980.0,
        memory_total_bytes=150 * 2**30,
    )
    for gpu in (0, 1)
)


def meta(**fields: Any) -> SessionMeta:
    return SessionMeta(**{"session": "the-session", "anchor": ANCHOR, "profile": "p", **fields})


def on(second: float) -> float:
    """A second of the session on the host's clock."""
    return ANCHOR.monotonic + second


def sweep(second: float, *, hot: bool = False) -> ev.GpuSamples:
    def sample(gpu: int) -> GpuSample:
        throttled = hot and gpu == 1
        return GpuSample(
            gpu=gpu,
            temperature_celsius=90.5 if throttled else 60.0 + gpu + second / 10,
            power_watts=412.125,
            energy_joules=1000.0 + 412.125 * second,
            sm_clock_mhz=1200.0 if throttled else 1980.0,
            utilization_percent=97.0,
            memory_used_bytes=140 * 2**30,
            headroom_celsius=12.5,
            hbm_temperatures_celsius=(41.0, 43.5),
            pcie_tx_bytes=2**40 + gpu,
            power_peak_watts=455.25,
            throttle_reasons=("hw_thermal", "sw_power_cap") if throttled else (),
            throttle_thermal_s=max(0.0, second - 30.0) if gpu == 1 else 0.0,
            throttle_power_s=1.25,
        )

    return ev.GpuSamples(at=on(second), samples=(sample(0), sample(1)))


def requests_of(step: int, concurrency: int, opens: float, closes: float) -> list[RequestRecord]:
    """Requests of every kind around a window, with awkward digits."""
    chance = random.Random(step)
    records = []
    for number in range(concurrency * 12):
        sent = opens - 1 + chance.random() * (closes - opens + 1)
        ttft = 0.05 + chance.random() / 3
        tpot = 0.01 + chance.random() / 100
        tokens = chance.randint(20, 60)
        arrived = [sent + ttft + tpot * token for token in range(tokens)]
        outcome = chance.choices(
            [Outcome.OK, Outcome.CUT, Outcome.TIMEOUT, Outcome.REFUSED], [20, 1, 1, 1]
        )[0]
        is_silent = outcome in (Outcome.REFUSED, Outcome.TIMEOUT)
        records.append(
            RequestRecord(
                request=step * 1000 + number,
                step=step,
                concurrency=concurrency,
                scheduled=on(sent - 0.001),
                sent=on(sent),
                ttft_s=None if is_silent else ttft,
                tpot_s=None if is_silent else tpot,
                e2e_s=None if is_silent else ttft + tpot * (tokens - 1),
                prompt_tokens=None if is_silent else 512,
                output_tokens=0 if is_silent else tokens,
                tokens_in_window=0
                if is_silent
                else sum(1 for moment in arrived if opens <= moment <= closes),
                counted=opens <= sent <= closes,
                outcome=outcome,
                detail="=cmd|' /C calc'!A0" if outcome is Outcome.REFUSED else "",
            )
        )
    return records


def session_events() -> list[ev.Event]:
    """A session of sixty seconds: two steps, a thermal throttle from second 30 to 34."""
    events: list[ev.Event] = [
        ev.GpuSourceChanged(at=on(0.0625), source="sim", state=GpuSourceState.LIVE, gpus=CARDS),
        ev.ServerChanged(
            at=on(0.125),
            status=ServerStatus(
                state=ServerState.STARTING,
                since=on(0.125),
                model="acme/model-7b",
                base_url="http://127.0.0.1:8000",
                stage="weights",
                stage_since=on(0.125),
                visible_gpus=(0, 1),
            ),
        ),
        ev.ServerChanged(
            at=on(4.5),
            status=ServerStatus(
                state=ServerState.READY,
                since=on(4.5),
                model="acme/model-7b",
                base_url="http://127.0.0.1:8000",
                stage_since=on(4.5),
                ready_after_s=4.375,
                visible_gpus=(0, 1),
            ),
        ),
        ev.ThrottleBegan(
            at=on(30.0),
            gpu=1,
            kind=ThrottleKind.THERMAL,
            reasons=("hw_thermal",),
            temperature_celsius=90.5,
            sm_clock_mhz=1200.0,
            sm_clock_max_mhz=1980.0,
        ),
        ev.ThrottleEnded(
            at=on(34.0),
            gpu=1,
            kind=ThrottleKind.THERMAL,
            began_at=on(30.0),
            peak_temperature_celsius=90.5,
            lowest_sm_clock_mhz=1200.0,
        ),
        ev.Finding(
            at=on(31.0),
            kind="nccl_timeout",
            severity=Severity.CRITICAL,
            source="log",
            subject="rank:1",
            message='=HYPERLINK("http://192.0.2.1")\x1b[31m, two\nlines',
            first_check="throttle reasons of every GPU",
            line=3,
        ),
        ev.Notice(at=on(32.0), severity=Severity.WARNING, text="a notice"),
        ev.GpuReadFailed(at=on(33.0), gpu=0, call="power", error="no permission"),
    ]
    events += [sweep(tenth / 10, hot=300 <= tenth < 340) for tenth in range(600)]
    events += [
        ev.ServerMetricsRead(
            at=on(second),
            metrics=ServerMetrics(
                running_requests=second,
                waiting_requests=0,
                kv_cache_usage=0.25,
                prompt_tokens_total=512.0 * second,
                generation_tokens_total=100.0 * second,
                iterations_total=10.0 * second,
            ),
        )
        for second in range(5, 60)
    ]
    for step, concurrency, opens, closes in ((1, 1, 8.0, 20.0), (2, 4, 26.5, 40.25)):
        events += _step(step, concurrency, opens, closes)
    events.append(ev.SessionEnded(at=on(60.0), session="the-session"))
    return sorted(events, key=lambda event: event.at)


def _step(step: int, concurrency: int, opens: float, closes: float) -> list[ev.Event]:
    requests = requests_of(step, concurrency, opens, closes)
    gaps = Histogram()
    for request in requests:
        gaps.add(request.tpot_s or 0.0)
    window = StepGpuWindow()
    window.begin(on(opens))
    for tenth in range(600):
        window.add(sweep(tenth / 10, hot=300 <= tenth < 340))
        if abs(tenth / 10 - closes) < 0.06:
            window.close(on(closes))
    result = summarize_step(
        step=step,
        concurrency=concurrency,
        requests=requests,
        opened_at=on(opens),
        closed_at=on(closes),
        anchor=ANCHOR,
        gaps=gaps.counts,
        gpus=window.end(on(closes)),
        idle_watts=IDLE_WATTS,
        slo=SLO,
    )
    plan = LoadPlan(ramp=(1, 4), prompt="a prompt of the plan")
    return [
        ev.LoadChanged(
            at=on(opens - 1),
            state=LoadState.WARMUP,
            mode=LoadMode.RAMP,
            concurrency=concurrency,
            step=step,
            window_opens_at=on(opens),
            window_closes_at=on(closes),
            plan=plan,
        ),
        ev.StepBegan(
            at=on(opens), step=step, concurrency=concurrency, first_sent_at=on(opens - 0.875)
        ),
        *(
            ev.RequestsEnded(at=on(closes + part / 10), requests=tuple(requests[part::4]))
            for part in range(4)
        ),
        ev.StepEnded(at=on(closes + 0.5), result=result),
    ]


def record(folder: Path, events: Iterable[ev.Event], **fields: Any) -> list[str]:
    """Record events into a folder; what the recorder had to say."""
    notices: list[str] = []
    recorder = Recorder(folder, meta(**fields), notices.append)
    for event in events:
        recorder.record(event)
    recorder.close()
    return notices


def read_csv(path: Path) -> list[dict[str, str]]:
    """A file as any script would read it."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
