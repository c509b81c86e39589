"""Cards under one server: the slowest sets the pace, and the demo's story comes out."""

from __future__ import annotations

import msgspec
import pytest

from gpu_dash.demo.engine import Capacity, Engine
from gpu_dash.demo.rack import Rack, Work, card_specs
from gpu_dash.model.gpu import GpuInfo, GpuSample
from tests.unit.demo.virtual_time import ClosedLoop

HOT_GPU = 2
RAMP = (1, 4, 8, 16, 32)
STEP_S = 23.0


def rack(
    gpus: int = 4, workers: int = 4, hot_gpu: int | None = HOT_GPU, time_scale: float = 1.0
) -> Rack:
    return Rack(card_specs(gpus, hot_gpu=hot_gpu, time_scale=time_scale), workers)


def advance(cards: Rack, seconds: float, work: Work | None, stuck_gpu: int | None = None) -> None:
    for _ in range(round(seconds * 10)):
        cards.advance(0.1, work, stuck_gpu)


def run_until_slowed(cards: Rack) -> None:
    """Full load until the hot card's hardware slowdown steps in."""
    for _ in range(10_000):
        if "hw_thermal" in cards.cards[HOT_GPU].throttle_reasons:
            return
        cards.advance(0.1, Work(1.0))
    pytest.fail("the hot card never reached its slowdown threshold")


def test_the_demo_ramp_heats_the_cards_throttles_one_and_the_throughput_falls() -> None:
    cards = rack()
    loop = ClosedLoop(Engine(Capacity(max_num_seqs=64)), cards)
    by_step: dict[int, list[float]] = {}
    for concurrency in RAMP:
        by_step[concurrency] = []
        for _ in range(round(STEP_S)):
            by_step[concurrency].append(loop.run(concurrency, 1.0))
        thermal = [card.throttle_thermal_s > 0 for card in cards.cards]
        assert thermal == [False, False, concurrency == 32, False]
    last = by_step[32]
    assert max(last) > 1.3 * max(by_step[16]), "before the throttle, more load gives more"
    assert min(last) < 0.6 * max(last), "the throttle costs throughput"
    assert last.index(min(last)) > last.index(max(last))
    assert min(last) < min(by_step[16][5:])


def test_without_a_hot_card_the_same_ramp_keeps_its_throughput() -> None:
    loop = ClosedLoop(Engine(Capacity(max_num_seqs=64)), rack(hot_gpu=None))
    levels = [loop.run(concurrency, STEP_S) for concurrency in RAMP]
    assert levels == sorted(levels)
    assert levels[-1] > 1300


def test_the_slowest_working_card_sets_the_pace() -> None:
    cards = rack()
    assert cards.clock_ratio == 1
    run_until_slowed(cards)
    ratios = [card.sm_clock_mhz / card.spec.sm_clock_max_mhz for card in cards.cards]
    assert ratios[HOT_GPU] == min(ratios) < 0.9
    assert cards.clock_ratio == ratios[HOT_GPU]


def test_fast_cards_that_wait_for_a_slow_one_are_busy_and_draw_less() -> None:
    cards = rack()
    run_until_slowed(cards)
    before = cards.cards[0].power_watts
    advance(cards, 1.0, Work(1.0))
    assert cards.cards[0].power_watts < 0.75 * before
    assert cards.cards[0].utilization_percent > 99
    assert cards.cards[0].throttle_reasons == ()


def test_a_stuck_card_is_the_odd_one_out() -> None:
    cards = rack()
    advance(cards, 5.0, Work(0.8))
    advance(cards, 5.0, Work(0.8), stuck_gpu=1)
    assert [card.utilization_percent for card in cards.cards] == [100, 0, 100, 100]
    powers = [card.power_watts for card in cards.cards]
    assert powers[1] == min(powers) == pytest.approx(110, abs=1)
    assert powers[0] == pytest.approx(161, abs=2)


def test_cards_beyond_the_tensor_parallel_size_stay_idle() -> None:
    cards = rack(gpus=4, workers=2)
    advance(cards, 10.0, Work(0.8))
    assert [card.utilization_percent for card in cards.cards] == [100, 100, 0, 0]
    assert cards.cards[0].temperature_celsius > 45 > cards.cards[3].temperature_celsius


def test_a_server_with_nothing_to_do_lets_the_cards_cool() -> None:
    cards = rack()
    advance(cards, 20.0, Work(1.0))
    warm = cards.cards[0].temperature_celsius
    advance(cards, 20.0, None)
    assert cards.cards[0].temperature_celsius < warm - 5
    assert cards.cards[0].power_watts == pytest.approx(110, abs=0.1)


@pytest.mark.parametrize("gpus", [1, 4, 16])
def test_the_document_holds_what_the_model_calls_a_card_and_a_sample(gpus: int) -> None:
    cards = rack(gpus=gpus, workers=1, hot_gpu=0, time_scale=20)
    advance(cards, 6.0, Work(1.0))
    entries = msgspec.to_builtins(cards.document())["gpus"]
    assert [entry["gpu"] for entry in entries] == list(range(gpus))
    assert len({entry["uuid"] for entry in entries}) == gpus
    assert len({entry["pci_bus_id"] for entry in entries}) == gpus
    known = {field.name for field in msgspec.structs.fields(GpuSample)}
    for entry in entries:
        assert set(entry["sample"]) <= known
        assert None not in entry["sample"].values()
        sample = msgspec.convert(entry["sample"], GpuSample)
        info = msgspec.convert({**entry["limits"], **identity(entry)}, GpuInfo)
        limit = info.nearest_limit_celsius
        assert limit is not None
        assert sample.temperature_celsius is not None
        assert sample.headroom_celsius == limit - sample.temperature_celsius
        assert sample.memory_total_bytes == info.memory_total_bytes
    first = entries[0]["sample"]
    assert first["throttle_reasons"]
    assert first["throttle_thermal_s"] > 0
    assert first["energy_joules"] > 0


def identity(entry: dict[str, object]) -> dict[str, object]:
    return {name: entry[name] for name in ("gpu", "name", "uuid", "pci_bus_id")}


def test_a_lost_card_keeps_its_name_and_reads_nothing() -> None:
    cards = rack()
    cards.lose(3)
    entries = msgspec.to_builtins(cards.document())["gpus"]
    assert [entry["lost"] for entry in entries] == [False, False, False, True]
    assert entries[3]["sample"] == {"gpu": 3}
    assert entries[3]["name"] == "Simulated H100 80GB"
