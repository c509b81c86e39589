"""One account out of several samplers."""

from __future__ import annotations

from collections.abc import Iterable

from gpu_dash.gpu.continuity import Continuity
from gpu_dash.gpu.protocol import GpuEvent
from gpu_dash.model.events import (
    Finding,
    GpuSamples,
    GpuSourceChanged,
    ThrottleBegan,
    ThrottleEnded,
)
from gpu_dash.model.gpu import GpuInfo, GpuSample, GpuSourceState, ThrottleKind
from gpu_dash.model.log import Severity

LIVE = GpuSourceChanged(
    at=1.0, source="nvml", state=GpuSourceState.LIVE, gpus=(GpuInfo(gpu=0, name="A"),)
)


def take(account: Continuity, *events: GpuEvent) -> list[GpuEvent]:
    return [told for event in events for told in account.take(event)]


def stale(at: float, detail: str) -> GpuSourceChanged:
    return GpuSourceChanged(at=at, source="nvml", state=GpuSourceState.STALE, detail=detail)


def samples(at: float, thermal: float | None, power: float | None = 0.0) -> GpuSamples:
    sample = GpuSample(gpu=0, throttle_thermal_s=thermal, throttle_power_s=power)
    return GpuSamples(at=at, samples=(sample,))


def totals(events: Iterable[GpuEvent]) -> list[tuple[float | None, float | None]]:
    return [
        (sample.throttle_thermal_s, sample.throttle_power_s)
        for event in events
        if isinstance(event, GpuSamples)
        for sample in event.samples
    ]


def test_a_state_is_told_once() -> None:
    account = Continuity()
    again = GpuSourceChanged(at=2.0, source=LIVE.source, state=LIVE.state, gpus=LIVE.gpus)
    assert take(account, LIVE, again) == [LIVE]
    hung = stale(3.0, "hangs")
    assert list(account.tell(hung)) == [hung]
    assert list(account.tell(stale(4.0, "hangs"))) == []


def test_a_silent_sampler_that_speaks_again_is_live_with_its_cards() -> None:
    account = Continuity()
    take(account, LIVE)
    list(account.tell(stale(3.0, "hangs")))
    (live,) = account.speaks_again(5.0)
    assert (live.at, live.state, live.gpus) == (5.0, GpuSourceState.LIVE, LIVE.gpus)


def test_a_sampler_that_never_read_does_not_become_live_by_speaking() -> None:
    account = Continuity()
    take(account, LIVE)
    list(account.ended())
    assert list(account.speaks_again(5.0)) == []


def test_the_end_of_a_sampler_ends_its_throttles_at_its_last_reading() -> None:
    account = Continuity()
    hot = ThrottleBegan(
        at=1.5,
        gpu=0,
        kind=ThrottleKind.THERMAL,
        reasons=("hw_thermal",),
        temperature_celsius=93.0,
        sm_clock_mhz=1005.0,
    )
    brake = ThrottleBegan(at=1.6, gpu=0, kind=ThrottleKind.POWER_BRAKE, reasons=())
    over = ThrottleEnded(at=1.8, gpu=0, kind=ThrottleKind.POWER_BRAKE, began_at=1.6)
    take(account, LIVE, hot, brake, over, samples(2.0, 0.5))
    assert list(account.ended()) == [
        ThrottleEnded(
            at=2.0,
            gpu=0,
            kind=ThrottleKind.THERMAL,
            began_at=1.5,
            peak_temperature_celsius=93.0,
            lowest_sm_clock_mhz=1005.0,
        )
    ]
    assert list(account.ended()) == []


def test_totals_go_on_over_several_samplers() -> None:
    account = Continuity()
    told = take(account, LIVE, samples(2.0, 3.0, 1.0))
    list(account.ended())
    told += take(account, LIVE, samples(5.0, 0.0, 0.0), samples(6.0, 0.5, 0.25))
    list(account.ended())
    told += take(account, LIVE, samples(9.0, 0.0, None), samples(9.1, 1.0, 0.0))
    assert totals(told) == [(3.0, 1.0), (3.0, 1.0), (3.5, 1.25), (3.5, None), (4.5, 1.25)]


def test_how_long_a_sampler_has_read_is_its_own() -> None:
    account = Continuity()
    take(account, LIVE, samples(14.0, 0.0))
    assert account.read_for_s == 13.0
    list(account.ended())
    assert account.read_for_s == 0.0


def test_what_needs_no_account_passes() -> None:
    account = Continuity()
    xid = Finding(at=1.0, kind="xid", severity=Severity.CRITICAL, source="gpu")
    assert take(account, xid) == [xid]
