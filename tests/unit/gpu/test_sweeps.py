"""From sweeps to events."""

from __future__ import annotations

from gpu_dash.gpu.backend import Reading, Sweep
from gpu_dash.gpu.processes import Holder
from gpu_dash.gpu.protocol import GpuEvent
from gpu_dash.gpu.sweeps import Sweeps
from gpu_dash.model.events import (
    GpuProcesses,
    GpuReadFailed,
    GpuSamples,
    GpuSourceChanged,
    ThrottleBegan,
    ThrottleEnded,
)
from gpu_dash.model.gpu import GpuInfo, GpuSample


class ScriptedBackend:
    """Gives the sweeps that the test put into it."""

    source = "nvml"
    event_sources: tuple[str, ...] = ()
    event_sources_missing: tuple[str, ...] = ()
    holders: list[Holder] | None = None

    def __init__(self, *sweeps: Sweep) -> None:
        self.gpus: tuple[GpuInfo, ...] = (GpuInfo(gpu=0, name="A"), GpuInfo(gpu=1, name="B"))
        self.detail = ""
        self._sweeps = list(sweeps)

    def open(self) -> None: ...

    def sweep(self) -> Sweep:
        return self._sweeps.pop(0)

    def processes(self) -> list[Holder] | None:
        return self.holders


def sweep(at: float, *readings: Reading, failures: tuple[GpuReadFailed, ...] = ()) -> Sweep:
    return Sweep(at, readings, failures)


def cool(gpu: int) -> Reading:
    return Reading(GpuSample(gpu=gpu, temperature_celsius=40.0))


def hot(gpu: int) -> Reading:
    return Reading(GpuSample(gpu=gpu, temperature_celsius=93.0, throttle_reasons=("hw_thermal",)))


def events_of(backend: ScriptedBackend, sweeps: int) -> list[list[GpuEvent]]:
    emitted: list[GpuEvent] = []
    source = Sweeps(backend, emitted.append)
    groups = []
    for _ in range(sweeps):
        source.sweep()
        groups.append(emitted[:])
        emitted.clear()
    return groups


def test_the_source_comes_first_and_again_only_when_it_changed() -> None:
    backend = ScriptedBackend(sweep(1.0, cool(0)), sweep(1.1, cool(0)), sweep(1.2, cool(0)))
    emitted: list[GpuEvent] = []
    source = Sweeps(backend, emitted.append)
    source.sweep()
    source.sweep()
    backend.gpus = (GpuInfo(gpu=0, name="C"),)
    source.sweep()
    assert [type(event) for event in emitted] == [
        GpuSourceChanged,
        GpuSamples,
        GpuSamples,
        GpuSourceChanged,
        GpuSamples,
    ]
    assert isinstance(emitted[0], GpuSourceChanged)
    assert [info.name for info in emitted[0].gpus] == ["A", "B"]


def test_a_throttle_is_told_before_the_samples_that_show_it() -> None:
    first, second = events_of(ScriptedBackend(sweep(1.0, cool(0)), sweep(1.1, hot(0), cool(1))), 2)
    assert [type(event) for event in first] == [GpuSourceChanged, GpuSamples]
    began, samples = second
    assert isinstance(began, ThrottleBegan)
    assert (began.gpu, began.at) == (0, 1.1)
    assert isinstance(samples, GpuSamples)
    assert [sample.gpu for sample in samples.samples] == [0, 1]
    assert samples.samples[0].throttle_thermal_s is not None


def test_a_card_that_is_lost_while_it_throttles_ends_its_throttle() -> None:
    lost = GpuReadFailed(at=1.2, gpu=0, call="GetTemperature", error="GPU is lost", lost=True)
    *_, before_last, last = events_of(
        ScriptedBackend(
            sweep(1.0, hot(0), cool(1)),
            sweep(1.1, hot(0), cool(1)),
            sweep(1.2, cool(1), failures=(lost,)),
            sweep(9.0, cool(1)),
        ),
        4,
    )
    ended, samples = last
    assert before_last[0] == lost
    assert isinstance(ended, ThrottleEnded)
    assert (ended.gpu, ended.at) == (0, 1.1)
    assert isinstance(samples, GpuSamples)
    assert [sample.gpu for sample in samples.samples] == [1]


def test_processes_are_looked_for_seldom_and_told_when_they_change() -> None:
    backend = ScriptedBackend(*(sweep(at, cool(0)) for at in (1.0, 2.0, 6.0, 11.0, 16.0)))
    backend.holders = []
    emitted: list[GpuEvent] = []
    source = Sweeps(backend, emitted.append)

    def told() -> list[tuple[float, int]]:
        events = [event for event in emitted if isinstance(event, GpuProcesses)]
        return [(event.at, len(event.processes)) for event in events]

    source.sweep()
    assert told() == [(1.0, 0)]
    backend.holders = [Holder(0, 2**22 + 1, None)]
    source.sweep()
    assert told() == [(1.0, 0)]  # its turn comes later
    source.sweep()
    assert told() == [(1.0, 0), (6.0, 1)]
    source.sweep()
    backend.holders = None
    source.sweep()
    assert len(told()) == 2
