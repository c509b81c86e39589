"""Events folded into the state that every screen shows."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from gpu_dash.agent.store import _FOLDS, FINDINGS, LOG_LINES, Store
from gpu_dash.model import events as ev
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuInfo, GpuProcess, GpuSample, GpuSourceState, ThrottleKind
from gpu_dash.model.load import LoadState, Outcome, RequestRecord
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.model.server import ServerMetrics, ServerState, ServerStatus


def folded(*events: ev.Event) -> Store:
    store = Store()
    for event in events:
        store.fold(event)
    return store


def samples(at: float, **values: float) -> ev.GpuSamples:
    return ev.GpuSamples(at=at, samples=(GpuSample(gpu=0, **values),))  # type: ignore[arg-type]


def test_a_point_of_history_keeps_the_extremes_of_its_second() -> None:
    store = folded(
        samples(10.0, temperature_celsius=70, power_watts=300, sm_clock_mhz=1980),
        samples(10.4, temperature_celsius=83, power_watts=700, sm_clock_mhz=1200),
        samples(10.9, temperature_celsius=75, power_watts=400, sm_clock_mhz=1500),
        samples(11.0, temperature_celsius=60, power_watts=100, sm_clock_mhz=1980),
    )
    first, second = store.gpus[0].history
    assert (first.temperature_celsius, first.power_watts, first.sm_clock_mhz) == (83, 700, 1200)
    assert second.temperature_celsius == 60
    assert store.gpus[0].latest is not None
    assert store.gpus[0].latest.temperature_celsius == 60


def test_the_worst_of_two_throttles_is_shown_and_each_ends_by_itself() -> None:
    begin = [
        ev.ThrottleBegan(at=1, gpu=3, kind=kind, reasons=("x",))
        for kind in (ThrottleKind.POWER_CAP, ThrottleKind.THERMAL)
    ]
    source = ev.GpuSourceChanged(
        at=0, source="nvml", state=GpuSourceState.LIVE, gpus=(GpuInfo(gpu=3, name="c"),)
    )
    store = folded(source, *begin)
    worst = store.gpus[3].worst_throttle
    assert worst is not None
    assert worst.kind is ThrottleKind.THERMAL
    store.fold(
        ev.ThrottleEnded(
            at=5, gpu=3, kind=ThrottleKind.THERMAL, began_at=1, lowest_sm_clock_mhz=1005
        )
    )
    worst = store.gpus[3].worst_throttle
    assert worst is not None
    assert worst.kind is ThrottleKind.POWER_CAP
    thermal = next(s for s in store.throttle_spans if s.kind is ThrottleKind.THERMAL)
    assert (thermal.began_at, thermal.ended_at, thermal.lowest_sm_clock_mhz) == (1, 5, 1005)


def test_a_lost_card_keeps_its_last_reading_until_it_answers_again() -> None:
    store = folded(
        samples(1, temperature_celsius=50),
        ev.GpuReadFailed(at=2, gpu=0, call="nvmlDeviceGetTemperature", error="lost", lost=True),
    )
    assert store.gpus[0].lost == "lost"
    store.fold(samples(3, temperature_celsius=51))
    assert store.gpus[0].lost == ""


def test_a_card_that_the_source_no_longer_has_is_gone() -> None:
    def source(*gpus: int) -> ev.GpuSourceChanged:
        infos = tuple(GpuInfo(gpu=gpu, name="c") for gpu in gpus)
        return ev.GpuSourceChanged(at=0, source="sim", state=GpuSourceState.LIVE, gpus=infos)

    assert sorted(folded(source(0, 1, 2), source(0, 1)).gpus) == [0, 1]


def test_processes_and_event_sources_are_those_of_a_live_source() -> None:
    live = ev.GpuSourceChanged(
        at=1.0, source="nvml", state=GpuSourceState.LIVE, event_sources=("nvml",)
    )
    told = ev.GpuProcesses(at=1.0, processes=(GpuProcess(gpu=0, pid=7),), detail="host pids")
    stale = ev.GpuSourceChanged(at=2.0, source="nvml", state=GpuSourceState.STALE)
    store = folded(live, told, stale)
    assert store.gpu_event_sources == ("nvml",)
    assert [process.pid for process in store.gpu_processes] == [7]
    store.fold(ev.GpuSourceChanged(at=3.0, source="nvml", state=GpuSourceState.FAILED))
    assert (store.gpu_processes, store.gpu_processes_detail) == ((), "")


def test_the_servers_throughput_is_the_difference_of_its_counter() -> None:
    store = folded(
        ev.ServerMetricsRead(at=1, metrics=ServerMetrics(generation_tokens_total=1000)),
        ev.ServerMetricsRead(at=3, metrics=ServerMetrics(generation_tokens_total=1500)),
    )
    assert [point.generation_tokens_per_s for point in store.server_history] == [None, 250]


def test_a_counter_that_began_anew_is_no_negative_throughput() -> None:
    store = folded(
        ev.ServerMetricsRead(at=1, metrics=ServerMetrics(generation_tokens_total=1000)),
        ev.ServerMetricsRead(at=2, metrics=ServerMetrics(generation_tokens_total=5)),
    )
    assert store.server_history[-1].generation_tokens_per_s is None


@pytest.mark.parametrize("state", [ServerState.STOPPED, ServerState.FAILED])
def test_the_numbers_of_a_server_that_ended_are_not_shown_as_live(state: ServerState) -> None:
    store = folded(
        ev.ServerMetricsRead(at=1, metrics=ServerMetrics(running_requests=3)),
        ev.ServerChanged(at=2, status=ServerStatus(state=state)),
    )
    assert store.metrics is None


def test_ticks_of_one_second_are_one_point() -> None:
    store = folded(
        ev.LoadTick(at=5.0, in_flight=4, interval_s=0.25, output_tokens=100, ttft_p50_s=0.1),
        ev.LoadTick(at=5.25, in_flight=8, interval_s=0.25, output_tokens=200, ttft_p50_s=0.3),
        ev.LoadTick(at=5.5, in_flight=2, interval_s=0.5, output_tokens=0),
    )
    (point,) = store.load_history
    assert (point.output_tokens_per_s, point.in_flight, point.ttft_s) == (300, 8, 0.3)


def test_requests_are_counted_by_outcome() -> None:
    requests = tuple(
        RequestRecord(request=i, step=1, concurrency=1, scheduled=0, sent=0, outcome=outcome)
        for i, outcome in enumerate((Outcome.OK, Outcome.STALLED, Outcome.OK))
    )
    store = folded(ev.RequestsEnded(at=1, requests=requests))
    assert (store.requests_ok, store.requests_failed) == (2, 1)


def test_a_step_is_marked_from_its_opening_to_the_end_of_its_window() -> None:
    store = folded(
        ev.StepBegan(at=10, step=1, concurrency=4, first_sent_at=5),
        ev.LoadChanged(at=10, state=LoadState.RUNNING, step=1),
        ev.LoadChanged(at=15, state=LoadState.WARMUP, step=2),
    )
    (mark,) = store.step_marks
    assert (mark.opened_at, mark.closed_at, mark.concurrency) == (10, 15, 4)


def test_a_new_session_begins_with_an_empty_log_and_no_steps() -> None:
    store = folded(
        ev.LogLines(at=1, lines=(LogLine(1, "old"),)),
        ev.SessionBegan(at=2, session="s2", folder="/f", anchor=ClockAnchor(2, 100)),
    )
    assert (store.log, store.log_lines_total, store.session) == ([], 0, "s2")


def test_history_is_bounded() -> None:
    store = Store()
    for number in range(3 * LOG_LINES):
        store.fold(ev.LogLines(at=1, lines=(LogLine(number, "x"),)))
    for _ in range(3 * FINDINGS):
        store.fold(ev.Finding(at=1, kind="k", severity=Severity.INFO, source="log"))
    assert LOG_LINES <= len(store.log) <= LOG_LINES * 5 // 4
    assert store.log[-1].number == 3 * LOG_LINES - 1
    assert store.log_lines_total == 3 * LOG_LINES
    assert FINDINGS <= len(store.findings) <= FINDINGS * 5 // 4


def test_a_snapshot_is_the_whole_store() -> None:
    store = folded(
        samples(1, temperature_celsius=50),
        ev.ThrottleBegan(at=2, gpu=0, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",)),
        ev.ServerChanged(at=3, status=ServerStatus(state=ServerState.READY, model="m")),
        ev.LogLines(at=4, lines=(LogLine(1, "line", "oom_load", Severity.ERROR),)),
        ev.LoadTick(at=5, in_flight=1, interval_s=0.25, output_tokens=9),
    )
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(store), type=Store) == store


def test_every_kind_of_event_can_be_folded() -> None:
    assert set(_FOLDS) == set(get_args(ev.Event))
