"""When a throttle begins and ends, by kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from gpu_dash.gpu.backend import Reading, ThrottleCounters
from gpu_dash.gpu.reasons import throttle_reasons
from gpu_dash.gpu.throttle import QUIET_S, CardThrottle, ThrottleEdge
from gpu_dash.model.events import ThrottleBegan, ThrottleEnded
from gpu_dash.model.gpu import GpuSample, ThrottleKind

STEP_S = 0.1


def reading(
    bits: int = 0,
    *,
    clock: float | None = 1980.0,
    temperature: float = 60.0,
    utilization: float | None = 99.0,
    counters: ThrottleCounters | None = None,
) -> Reading:
    sample = GpuSample(
        gpu=3,
        temperature_celsius=temperature,
        sm_clock_mhz=clock,
        utilization_percent=utilization,
        throttle_reasons=throttle_reasons(bits),
    )
    return Reading(sample, counters)


def throttle() -> CardThrottle:
    card = CardThrottle(3)
    card.sm_clock_max_mhz = 1980.0
    return card


def edges_of(readings: Iterable[Reading], step_s: float = STEP_S) -> list[ThrottleEdge]:
    """What a card with these readings says, and then 20 s of quiet."""
    card = throttle()
    edges: list[ThrottleEdge] = []
    at = 0.0
    for number, one in enumerate(readings):
        at = number * step_s
        edges += card.see(at, one)[1]
    for _ in range(200):
        at += STEP_S
        edges += card.see(at, reading())[1]
    return edges


def spans(edges: Sequence[ThrottleEdge]) -> list[tuple[str, float, float]]:
    """Kind, begin and length of each throttle, in the order of their begins."""
    ended = {
        (edge.kind, edge.began_at): edge.at for edge in edges if isinstance(edge, ThrottleEnded)
    }
    return [
        (edge.kind.value, round(edge.at, 3), round(ended[edge.kind, edge.at] - edge.at, 3))
        for edge in edges
        if isinstance(edge, ThrottleBegan)
    ]


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        pytest.param([0x0] * 20, [], id="free"),
        pytest.param([0x1] * 20, [], id="idle"),
        pytest.param([0x2] * 20, [], id="application clocks"),
        pytest.param([0x0, 0x40, 0x40, 0x0], [("thermal", 0.1, 0.2)], id="hardware thermal"),
        pytest.param([0x0, 0x20, 0x0], [("thermal", 0.1, 0.1)], id="software thermal, one sample"),
        pytest.param([0x60] * 5, [("thermal", 0.0, 0.5)], id="both thermal, from the first sample"),
        pytest.param([0x80] * 3, [("power_brake", 0.0, 0.3)], id="power brake"),
        pytest.param([0x88] * 3, [("power_brake", 0.0, 0.3)], id="slowdown explained by the brake"),
        pytest.param([0x48] * 3, [("thermal", 0.0, 0.3)], id="slowdown explained by heat"),
        pytest.param([0x0, 0x8, 0x0, 0x0, 0x8, 0x0], [], id="slowdown for single samples"),
        pytest.param([0x0, 0x8, 0x8, 0x0], [("slowdown", 0.1, 0.2)], id="slowdown that stays"),
        pytest.param([0x0, 0x8, 0x48, 0x0], [("thermal", 0.2, 0.1)], id="slowdown turns thermal"),
        pytest.param(
            [0xC0] * 4, [("thermal", 0.0, 0.4), ("power_brake", 0.0, 0.4)], id="heat and brake"
        ),
        pytest.param(
            [0x40, *[0x0] * 10, 0x40, 0x0], [("thermal", 0.0, 1.2)], id="a pause of a second is one"
        ),
        pytest.param(
            [0x40, *[0x0] * 20, 0x40, 0x0],
            [("thermal", 0.0, 0.1), ("thermal", 2.1, 0.1)],
            id="a pause of two seconds makes two",
        ),
    ],
)
def test_polled_reasons(bits: list[int], expected: list[tuple[str, float, float]]) -> None:
    assert spans(edges_of(reading(each) for each in bits)) == expected


@pytest.mark.parametrize(
    ("readings", "throttles"),
    [
        pytest.param([reading(0x4, clock=1800)] * 100, 0, id="9 % below the maximum is normal"),
        pytest.param([reading(0x4, clock=1700)] * 100, 1, id="14 % below costs"),
        pytest.param([reading(0x0, clock=1200)] * 100, 0, id="a low clock without a power cap"),
        pytest.param([reading(0x4, clock=600, utilization=3)] * 100, 0, id="not busy"),
        pytest.param(
            [reading(0x4, clock=1200, utilization=None)] * 100, 1, id="MIG: no utilization"
        ),
        pytest.param([reading(0x4, clock=None)] * 100, 0, id="no clock"),
        pytest.param(
            [reading(), *[reading(0x4, clock=1600)] * 3, *[reading()] * 20] * 4,
            0,
            id="dips of 0.3 s are no event",
        ),
        pytest.param(
            [reading(), *[reading(0x4, clock=1300), reading(0x4, clock=1400), reading()] * 40],
            1,
            id="a clock that swings is one throttle",
        ),
    ],
)
def test_power_cap_counts_when_it_costs_clock(readings: list[Reading], throttles: int) -> None:
    edges = edges_of(readings)
    kinds = [edge.kind for edge in edges if isinstance(edge, ThrottleBegan)]
    assert kinds == [ThrottleKind.POWER_CAP] * throttles
    assert len(edges) == 2 * throttles


def test_a_deficit_beside_heat_is_the_heats() -> None:
    edges = edges_of([reading(0x64, clock=1005)] * 30)
    assert {edge.kind for edge in edges} == {ThrottleKind.THERMAL}


def test_a_begin_and_its_end_tell_what_happened() -> None:
    temperatures = (88.0, 93.0, 91.0)
    clocks = (1500.0, 1100.0, 1005.0)
    began, ended = edges_of(
        [
            *(
                reading(0x68, clock=clock, temperature=temperature)
                for clock, temperature in zip(clocks, temperatures, strict=True)
            ),
            # free again and idle: this low clock is no part of the throttle
            reading(0x1, clock=345, temperature=95),
        ]
    )
    assert began == ThrottleBegan(
        at=0.0,
        gpu=3,
        kind=ThrottleKind.THERMAL,
        reasons=("hw_slowdown", "sw_thermal", "hw_thermal"),
        temperature_celsius=88.0,
        sm_clock_mhz=1500.0,
        sm_clock_max_mhz=1980.0,
    )
    assert isinstance(ended, ThrottleEnded)
    assert ended.at == pytest.approx(0.3)
    assert (ended.peak_temperature_celsius, ended.lowest_sm_clock_mhz) == (93.0, 1005.0)


def test_an_end_is_told_after_the_quiet_time_and_not_before() -> None:
    card = throttle()
    card.see(0.0, reading(0x40))
    assert card.see(0.1, reading())[1] == []
    assert card.see(0.1 + QUIET_S - 0.05, reading())[1] == []
    (ended,) = card.see(0.1 + QUIET_S, reading())[1]
    assert ended.at == 0.1


def counting(**seconds: float) -> ThrottleCounters:
    return ThrottleCounters(
        sw_thermal_s=seconds.get("sw_thermal", 0.0),
        hw_thermal_s=seconds.get("hw_thermal", 0.0),
        hw_power_brake_s=seconds.get("brake", 0.0),
        sw_power_cap_s=seconds.get("cap", 0.0),
    )


def test_an_event_between_two_samples_is_found_in_the_counters() -> None:
    card = throttle()
    card.see(0.0, reading(counters=counting()))
    (began,) = card.see(1.0, reading(temperature=88.0, counters=counting(hw_thermal=0.03)))[1]
    assert isinstance(began, ThrottleBegan)
    assert (began.kind, began.reasons) == (ThrottleKind.THERMAL, ("hw_thermal",))
    assert began.at == pytest.approx(0.97)
    assert began.temperature_celsius == 88.0
    assert began.sm_clock_mhz is None  # it is past
    (ended,) = card.see(2.6, reading(counters=counting(hw_thermal=0.03)))[1]
    assert isinstance(ended, ThrottleEnded)
    assert (ended.began_at, ended.at) == (began.at, 1.0)


def test_short_events_in_each_second_are_one_throttle() -> None:
    card = throttle()
    edges: list[ThrottleEdge] = []
    for second in range(8):
        growing = counting(brake=0.02 * min(second, 4))
        edges += card.see(float(second), reading(counters=growing))[1]
    assert spans(edges) == [("power_brake", 0.98, 3.02)]


def test_counters_add_no_event_to_one_that_was_polled() -> None:
    card = throttle()
    edges: list[ThrottleEdge] = []
    for tenth in range(60):
        polled = 5 <= tenth < 12
        # the counter trails the polled reasons by a sample
        thermal = min(max(tenth - 5, 0), 7) * STEP_S
        counters = counting(sw_thermal=thermal) if tenth % 10 == 0 else None
        edges += card.see(tenth * STEP_S, reading(0x20 if polled else 0, counters=counters))[1]
    assert spans(edges) == [("thermal", 0.5, 0.7)]


def test_a_counted_power_cap_is_no_event() -> None:
    card = throttle()
    for second in range(5):
        assert card.see(float(second), reading(counters=counting(cap=float(second))))[1] == []


def test_a_card_that_misses_readings_ends_its_throttles_at_its_last_sample() -> None:
    card = throttle()
    card.see(5.0, reading(0x40))
    card.see(5.1, reading(0x40))
    assert card.miss(5.2) == []
    (ended,) = card.miss(5.1 + QUIET_S)
    assert (ended.at, ended.kind) == (5.1, ThrottleKind.THERMAL)
    assert card.miss(9.0) == []


def test_a_missed_reading_does_not_cut_a_throttle() -> None:
    card = throttle()
    edges = card.see(5.0, reading(0x40))[1]
    edges += card.miss(5.1)
    edges += card.see(5.2, reading(0x40))[1]
    assert [type(edge) for edge in edges] == [ThrottleBegan]
