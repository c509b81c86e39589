"""When silence is a hung worker and when it is work."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from pathlib import Path

import pytest

from gpu_dash.agent.stuck import StuckWatch
from gpu_dash.model.events import (
    Event,
    Finding,
    GpuSamples,
    LoadChanged,
    LoadTick,
    LogLines,
    ServerChanged,
    ServerMetricsRead,
)
from gpu_dash.model.gpu import GpuSample
from gpu_dash.model.load import LoadPlan, LoadState
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.model.server import ServerMetrics, ServerState, ServerStatus

FROZEN = Path(__file__).parents[2] / "data" / "worker-frozen.gpu.csv.gz"


def ready(at: float = 0.0, state: ServerState = ServerState.READY) -> ServerChanged:
    return ServerChanged(at=at, status=ServerStatus(state=state))


def metrics(
    at: float, steps: float, *, running: int = 16, waiting: int = 0, prompts: float = 512.0
) -> ServerMetricsRead:
    return ServerMetricsRead(
        at=at,
        metrics=ServerMetrics(
            running_requests=running,
            waiting_requests=waiting,
            prompt_tokens_total=prompts,
            generation_tokens_total=steps * running,
            iterations_total=steps,
        ),
    )


def cards(at: float, *readings: tuple[float, float]) -> GpuSamples:
    """Utilization and power of each card."""
    return GpuSamples(
        at=at,
        samples=tuple(
            GpuSample(
                gpu=gpu,
                utilization_percent=utilization,
                power_watts=power,
                power_limit_watts=700,
                temperature_celsius=40,
            )
            for gpu, (utilization, power) in enumerate(readings)
        ),
    )


def decoding(seconds: int = 20, every: float = 1.0) -> list[Event]:
    """A server that decodes, and whose steps take no longer than ``every``."""
    return [ready(), *(metrics(float(second), second // every) for second in range(seconds + 1))]


def findings(events: Iterable[Event]) -> list[Finding]:
    watch = StuckWatch()
    return [found for event in events if (found := watch.take(event)) is not None]


def test_silence_in_decode_is_called_within_ten_seconds_of_the_last_token() -> None:
    silent = [metrics(20.0 + second, 20) for second in range(1, 15)]

    (found,) = findings([*decoding(), *silent])

    assert (found.kind, found.severity, found.subject) == ("stuck", Severity.CRITICAL, "")
    assert found.at - 20 <= 10
    assert "16 requests open" in found.message


@pytest.mark.parametrize(
    ("readings", "odd"),
    [
        (((100, 160), (0, 121)), "gpu:1"),
        (((100, 160), (100, 158), (0, 121), (100, 161)), "gpu:2"),
    ],
)
def test_the_picture_of_a_hung_collective_names_the_odd_card_sooner(
    readings: tuple[tuple[float, float], ...], odd: str
) -> None:
    silent: list[Event] = []
    for second in range(1, 15):
        silent += [cards(20.0 + second, *readings), metrics(20.0 + second, 20)]

    (found,) = findings([*decoding(), *silent])

    assert found.subject == odd
    assert found.at - 20 <= 6
    assert "only waits for it" in found.message


@pytest.mark.parametrize(
    "readings",
    [
        ((100, 620), (0, 121)),  # a stage of a pipeline, or one replica, that computes
        ((100, 160), (100, 160)),
        ((0, 120), (0, 121)),
    ],
)
def test_another_picture_shortens_nothing_and_names_no_card(
    readings: tuple[tuple[float, float], ...],
) -> None:
    silent: list[Event] = []
    for second in range(1, 15):
        silent += [cards(20.0 + second, *readings), metrics(20.0 + second, 20)]

    (found,) = findings([*decoding(), *silent])

    assert (found.at, found.subject) == (28, "")


def test_a_server_that_goes_on_is_told_once() -> None:
    silent = [metrics(20.0 + second, 20) for second in range(1, 60)]
    again = [metrics(80.0 + second, 21 + second) for second in range(10)]

    stuck, went_on = findings([*decoding(), *silent, *again])

    assert stuck.severity is Severity.CRITICAL
    assert (went_on.kind, went_on.severity, went_on.at) == ("stuck", Severity.INFO, 80)
    assert "after 60 s" in went_on.message


def test_requests_that_the_engine_does_not_report_any_more_are_open() -> None:
    """It hung between the end of some requests and the arrival of the next ones."""
    silent: list[Event] = [metrics(20.5, 21, running=0)]
    for second in range(1, 15):
        tick = LoadTick(at=20.5 + second, in_flight=4, interval_s=1.0, output_tokens=0)
        silent += [tick, metrics(20.6 + second, 21, running=0)]
    plan = LoadChanged(at=0.0, state=LoadState.RUNNING, plan=LoadPlan(prompt_tokens=64))

    (found,) = findings([plan, *decoding(), *silent])

    assert found.at - 20.5 < 10
    assert "4 requests open" in found.message


def test_callers_that_give_up_do_not_make_it_go_on() -> None:
    silent = [metrics(20.0 + second, 20) for second in range(1, 30)]
    given_up = [metrics(50.0 + second, 20, running=0) for second in range(10)]

    assert len(findings([*decoding(), *silent, *given_up])) == 1


# -- silence that is work --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state", [ServerState.STARTING, ServerState.STOPPING, ServerState.UNREACHABLE]
)
def test_only_a_ready_server_can_be_stuck(state: ServerState) -> None:
    silent = [metrics(21.0 + second, 20) for second in range(60)]

    assert findings([*decoding(), ready(20.5, state), *silent]) == []


def test_without_a_request_silence_means_nothing() -> None:
    assert findings([*decoding(), *(metrics(21.0 + s, 20, running=0) for s in range(99))]) == []


def test_a_server_that_compiles_may_be_silent() -> None:
    said = "(Worker pid=7) INFO 11-30 10:00:00 [monitor.py:34] Starting torch.compile"
    compiling = LogLines(at=21.0, lines=(LogLine(9, said),))
    silent = [metrics(21.0 + second, 20) for second in range(1, 50)]

    assert findings([*decoding(), compiling, *silent]) == []


def test_the_compiling_of_a_start_is_over_when_the_server_is_up() -> None:
    said = (
        "(Worker pid=7) INFO 11-30 10:00:00 [monitor.py:34] Starting torch.compile",
        "(APIServer pid=7) INFO:     Application startup complete.",
    )
    start = LogLines(at=0.0, lines=tuple(LogLine(9 + n, text) for n, text in enumerate(said)))
    silent = [metrics(20.0 + second, 20) for second in range(1, 15)]

    assert len(findings([start, *decoding(), *silent])) == 1


def test_a_slow_server_that_moves_is_not_stuck() -> None:
    """One step in six seconds, on a processor."""
    assert findings(decoding(seconds=120, every=6.0)) == []


def test_the_longest_prompt_in_one_step_is_waited_for() -> None:
    """A prompt of 32k tokens at 2000 tokens/s, without chunked prefill: 16 s without a step."""
    events = decoding()
    events += [metrics(21.0, 21, prompts=2512.0)]
    events += [metrics(21.5, 21, running=17, prompts=2512.0)]
    events += [metrics(22.0 + s, 21, running=17, prompts=2512.0) for s in range(17)]
    events += [metrics(39.5, 22, running=17, prompts=34_512.0)]

    assert findings(events) == []


def test_a_prefill_is_overdue_by_the_rate_that_was_measured() -> None:
    """The same prompt at 8000 tokens/s would have taken 4 s."""
    events = decoding()
    events += [metrics(21.0, 21, prompts=8512.0)]
    events += [metrics(21.5, 21, running=17, prompts=8512.0)]
    events += [metrics(22.0 + s, 21, running=17, prompts=8512.0) for s in range(30)]

    (found,) = findings(events)

    assert 12 <= found.at - 21 <= 14


def test_the_log_says_how_long_a_prompt_of_others_may_be() -> None:
    said = "(APIServer pid=7) INFO 11-30 10:00:00 [model.py:1] Using max model len 2048"
    events = [LogLines(at=0.0, lines=(LogLine(9, said),)), *decoding()]
    events += [metrics(20.0 + s, 20 + min(s, 1), running=17, prompts=1024) for s in range(1, 15)]

    (found,) = findings(events)

    assert 12 <= found.at - 21 <= 13


def test_our_own_prompts_are_known() -> None:
    plan = LoadPlan(prompt_tokens=512)
    load = LoadChanged(at=0.0, state=LoadState.RUNNING, plan=plan)
    events: list[Event] = [load, *decoding()]
    for second in range(1, 20):
        in_flight = LoadTick(at=20.0 + second, in_flight=17, interval_s=1.0, output_tokens=0)
        events += [in_flight, metrics(20.0 + second, 20, running=17)]

    (found,) = findings(events)

    assert found.at - 20 <= 17


def test_tokens_of_our_own_streams_are_a_heartbeat() -> None:
    """A server whose page has no counters of steps."""
    events: list[Event] = [ready()]
    for second in range(60):
        page = ServerMetrics(running_requests=2, waiting_requests=0)
        tick = LoadTick(at=second + 0.5, in_flight=2, interval_s=1.0, output_tokens=9)
        events += [ServerMetricsRead(at=float(second), metrics=page), tick]

    assert findings(events) == []


# -- a real one ------------------------------------------------------------------------------------


def test_a_frozen_worker_of_two_h200_is_called_with_its_card() -> None:
    """``SIGSTOP`` of the worker on GPU 1 at 18:58:37 and ``SIGCONT`` 72 s later."""
    with gzip.open(FROZEN, "rt", encoding="ascii") as lines:
        rows = list(csv.DictReader(lines))
    frozen_at = 1796065117.0
    events: list[Event] = [ready(at=float(rows[0]["ts"]) - 1)]
    steps, read_at = 0.0, 0.0
    for row in rows:
        at = float(row["ts"])
        if at - read_at >= 1.0:
            read_at = at
            is_frozen = frozen_at <= at < frozen_at + 72
            steps += 0 if is_frozen else 40
            events.append(metrics(at, steps, running=16 if at < frozen_at + 84 else 0))
        sample = GpuSample(
            gpu=int(row["gpu"]),
            utilization_percent=float(row["util"]),
            power_watts=float(row["power_inst_w"]),
            power_limit_watts=700.0,
            temperature_celsius=float(row["temp_c"]),
        )
        events.append(GpuSamples(at=at, samples=(sample,)))

    stuck, went_on = findings(events)

    assert stuck.subject == "gpu:1"
    assert 0 < stuck.at - frozen_at <= 10
    assert "GPU 0 (100 %, 160 W, 37 °C) only waits" in stuck.message.replace("38 °C", "37 °C")
    assert went_on.severity is Severity.INFO
