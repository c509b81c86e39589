"""AMD cards read from a fake of the driver's files: per chip, per fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_dash.gpu.amd import AmdBackend
from gpu_dash.gpu.backend import SourceAbsent
from gpu_dash.model.errors import GpuSourceError
from gpu_dash.model.gpu import GpuSample
from tests.fakes.amdgpu.chips import MI100, MI210, MI250, MI300X, Chip
from tests.fakes.amdgpu.metrics import pack
from tests.fakes.amdgpu.tree import AmdTree
from tests.fakes.clock import ManualClock


@pytest.fixture
def tree(tmp_path: Path) -> AmdTree:
    return AmdTree(tmp_path / "sys")


@pytest.fixture
def backend(tree: AmdTree, clock: ManualClock) -> AmdBackend:
    """Opened by the test, when the tree has its cards."""
    return AmdBackend(tree.root, clock)


def only_sample(backend: AmdBackend) -> GpuSample:
    (reading,) = backend.sweep().readings
    return reading.sample


@pytest.mark.parametrize("chip", [MI100, MI210, MI300X], ids=["MI100", "MI210", "MI300X"])
def test_a_card_of_each_chip(tree: AmdTree, backend: AmdBackend, chip: Chip) -> None:
    card = tree.add(chip)
    backend.open()
    card.write(chip.power_file, 285_500_000)
    card.write("temp2_input", 91_000)
    card.write("gpu_busy_percent", 97)
    card.set_clock("sclk", chip.sclk_mhz, 1)
    sample = only_sample(backend)
    (info,) = backend.gpus
    has_edge = "edge" in chip.temperatures
    assert sample.temperature_celsius == (41 if has_edge else 91)
    assert sample.hotspot_temperature_celsius == 91
    assert sample.memory_temperature_celsius == 43
    assert sample.headroom_celsius == 5  # junction: critical at 96
    assert sample.power_watts == 285.5
    assert sample.power_limit_watts == chip.power_cap_watts
    assert sample.sm_clock_mhz == info.sm_clock_max_mhz == chip.sclk_mhz[1]
    assert sample.memory_clock_mhz == chip.mclk_mhz[0]
    assert sample.utilization_percent == 97
    assert sample.memory_total_bytes == chip.vram_bytes
    assert sample.fan_percent is None
    assert info.pci_bus_id == "0000:03:00.0"
    assert info.name.startswith("AMD Instinct MI")
    assert info.uuid == "GPU-000000000000abc0"


def test_cards_of_other_vendors_and_gaps_do_not_count(tree: AmdTree, backend: AmdBackend) -> None:
    tree.add_other_vendor(0)
    tree.add(MI100, drm=1)
    tree.add(MI100, drm=3)
    backend.open()
    assert [(info.gpu, info.pci_bus_id) for info in backend.gpus] == [
        (0, "0000:04:00.0"),
        (1, "0000:06:00.0"),
    ]


def test_the_second_die_has_no_power_of_its_own(tree: AmdTree, backend: AmdBackend) -> None:
    tree.add(MI250)
    tree.add(MI250, second_die=True)
    backend.open()
    first, second = (reading.sample for reading in backend.sweep().readings)
    assert (first.power_watts, second.power_watts) == (42, None)
    assert (first.power_limit_watts, second.power_limit_watts) == (560, None)
    assert second.temperature_celsius == 41


def test_throttle_bits_of_a_1_3_table(tree: AmdTree, backend: AmdBackend) -> None:
    card = tree.add(MI210)
    backend.open()
    assert only_sample(backend).throttle_reasons == ()
    bits = 1 << 0 | 1 << 34 | 1 << 57
    card.write("gpu_metrics", card.table(MI210, indep_throttle_status=bits))
    assert only_sample(backend).throttle_reasons == ("sw_power_cap", "hw_thermal", hex(1 << 57))


def test_residencies_become_seconds(tree: AmdTree, backend: AmdBackend, clock: ManualClock) -> None:
    card = tree.add(MI300X)
    backend.open()
    backend.sweep()
    clock.advance(2.0)
    busy = {"average_gfx_activity": 90, "accumulation_counter": 10}
    card.write("gpu_metrics", card.table(MI300X, **busy, hbm_thm_residency_acc=7))
    (reading,) = backend.sweep().readings
    assert reading.sample.throttle_reasons == ("hw_thermal",)
    assert reading.counters is not None
    assert reading.counters.hw_thermal_s == pytest.approx(1.4)
    assert reading.counters.sw_power_cap_s == 0


def test_residencies_that_grow_at_rest_are_not_believed(
    tree: AmdTree, backend: AmdBackend, clock: ManualClock
) -> None:
    card = tree.add(MI300X)
    backend.open()
    backend.sweep()
    clock.advance(2.0)
    card.write("gpu_metrics", card.table(MI300X, accumulation_counter=9, ppt_residency_acc=9))
    (reading,) = backend.sweep().readings
    assert reading.sample.throttle_reasons == ()
    assert reading.counters is not None
    assert reading.counters.sw_power_cap_s == 0


@pytest.mark.parametrize("revision", [(1, 9), (2, 3), (3, 0)])
def test_an_unknown_table_is_declined_once_and_named(
    tree: AmdTree, backend: AmdBackend, revision: tuple[int, int]
) -> None:
    table = bytearray(pack("v1_3"))
    table[2:4] = revision
    tree.add(MI300X).write("gpu_metrics", bytes(table))
    backend.open()
    sweep = backend.sweep()
    assert sweep.failures == ()
    assert sweep.readings[0].sample.hotspot_temperature_celsius == 42
    name = "v{}_{}".format(*revision)
    assert backend.detail == (
        f"GPU 0: gpu_metrics {name} is not known here: no throttle reasons and no energy"
    )


@pytest.mark.parametrize(
    ("file", "content", "field", "words"),
    [
        ("gpu_busy_percent", "", "utilization_percent", "gpu_busy_percent says '"),
        ("temp1_input", "hot", "temperature_celsius", "temp1_input says 'hot"),
        ("power1_average", "-1", "power_watts", "power1_average says '-1"),
        ("gpu_metrics", pack("v1_3")[:40], "energy_joules", "cut short: 40 bytes"),
        ("mem_info_vram_used", None, "memory_used_bytes", "No such file"),
    ],
)
def test_a_broken_file_is_a_failure_and_no_value(
    tree: AmdTree,
    backend: AmdBackend,
    clock: ManualClock,
    file: str,
    content: str | bytes | None,
    field: str,
    words: str,
) -> None:
    card = tree.add(MI100)
    backend.open()
    backend.sweep()
    clock.advance(1.0)
    if content is None:
        card.remove(file)
    else:
        card.write(file, content)
    sweep = backend.sweep()
    (failure,) = sweep.failures
    assert words in failure.error
    assert not failure.lost
    assert getattr(sweep.readings[0].sample, field) is None
    assert backend.sweep().failures == ()  # said once


def test_one_lost_card_leaves_the_other(
    tree: AmdTree, backend: AmdBackend, clock: ManualClock
) -> None:
    tree.add(MI100)
    lost = tree.add(MI100)
    backend.open()
    backend.sweep()
    lost.vanish()
    sweep = backend.sweep()
    assert [reading.sample.gpu for reading in sweep.readings] == [0]
    assert [(failure.gpu, failure.lost) for failure in sweep.failures] == [(1, True)]


def test_all_cards_gone_is_a_lost_source(
    tree: AmdTree, backend: AmdBackend, clock: ManualClock
) -> None:
    card = tree.add(MI100)
    backend.open()
    backend.sweep()
    card.vanish()
    backend.sweep()
    clock.advance(1.5)
    with pytest.raises(GpuSourceError, match="is no longer on the bus"):
        backend.sweep()


def test_without_a_card_the_reason_is_said(backend: AmdBackend) -> None:
    with pytest.raises(SourceAbsent, match="no AMD card with the amdgpu driver"):
        backend.open()
