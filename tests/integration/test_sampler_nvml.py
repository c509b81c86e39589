"""The sampler on the scripted driver, through the real nvidia-ml-py, in a real child process."""

from __future__ import annotations

import os
import subprocess
import time
from functools import partial

import pytest

from gpu_dash.gpu.child import sampler_command
from gpu_dash.gpu.identity import visible_gpus
from gpu_dash.gpu.protocol import GpuEvent
from gpu_dash.model.events import (
    Finding,
    GpuProcesses,
    GpuReadFailed,
    GpuSamples,
    GpuSourceChanged,
    ThrottleBegan,
    ThrottleEnded,
)
from gpu_dash.model.frames import FrameDecoder
from gpu_dash.model.gpu import GpuInfo, GpuSample, GpuSourceState, ThrottleKind
from gpu_dash.model.log import Severity
from tests.fakes.nvml.scene import NvmlScene
from tests.integration.sampler_run import SamplerRun

pytest_plugins = ["tests.fakes.nvml.fixture"]

BUSY = """
*.util 95
*.temp 61
*.power_mw 560000
*.sm_mhz 1950
*.reasons 0
*.mem_used 130000000000
"""
SCENE = f"""{BUSY}
3.temp 93
3.sm_mhz 1005
3.reasons 0x60
5.power_mw 699500
5.reasons 0x4
"""


def once(scene: NvmlScene, source: str = "nvml") -> tuple[int, list[GpuEvent]]:
    """Exit code and events of one sweep."""
    done = subprocess.run(
        sampler_command(source, None, once=True),
        env=scene.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
        timeout=20,
    )
    decoder: FrameDecoder[GpuEvent] = FrameDecoder(GpuEvent)
    return done.returncode, list(decoder.feed(done.stdout))


def samples_of(events: list[GpuEvent]) -> dict[int, GpuSample]:
    (samples,) = (event for event in events if isinstance(event, GpuSamples))
    return {sample.gpu: sample for sample in samples.samples}


def is_of(gpu: int, event: ThrottleEnded) -> bool:
    return event.gpu == gpu


def test_one_sweep_has_every_field_of_eight_cards(nvml_scene: NvmlScene) -> None:
    nvml_scene.write(f"{BUSY}\n*.name NVIDIA \x1b[31mH200\n*.energy_mj 5000\n*.temp_mem 70")
    code, events = once(nvml_scene)
    assert code == 0
    source = events[0]
    assert isinstance(source, GpuSourceChanged)
    assert (source.source, source.state, source.detail) == ("nvml", GpuSourceState.LIVE, "")
    assert [info.gpu for info in source.gpus] == list(range(8))
    assert source.gpus[1] == GpuInfo(
        gpu=1,
        name="NVIDIA H200",
        uuid="GPU-fa4e0000-0000-4000-8000-000000000001",
        pci_bus_id="0000:91:00.0",
        max_operating_temperature_celsius=87,
        slowdown_temperature_celsius=89,
        shutdown_temperature_celsius=95,
        power_limit_default_watts=700,
        power_limit_min_watts=200,
        power_limit_max_watts=700,
        sm_clock_max_mhz=1980,
        memory_clock_max_mhz=3201,
        memory_total_bytes=150754820096,
    )
    assert samples_of(events)[7] == GpuSample(
        gpu=7,
        temperature_celsius=61,
        memory_temperature_celsius=70,
        headroom_celsius=26,
        power_watts=560,
        power_peak_watts=560,
        power_mean_watts=560,
        power_limit_watts=700,
        energy_joules=5,
        sm_clock_mhz=1950,
        memory_clock_mhz=3201,
        utilization_percent=95,
        memory_utilization_percent=0,
        pcie_tx_bytes=0,
        pcie_rx_bytes=0,
        nvlink_tx_bytes=0,
        nvlink_rx_bytes=0,
        ecc_corrected=0,
        ecc_uncorrected=0,
        memory_used_bytes=130000000000,
        memory_total_bytes=150754820096,
        throttle_thermal_s=0,
        throttle_power_s=0,
    )


def test_heat_and_a_mere_power_cap_are_told_apart(nvml_scene: NvmlScene) -> None:
    nvml_scene.write(SCENE)
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        began = run.wait(ThrottleBegan)
        assert (began.gpu, began.kind) == (3, ThrottleKind.THERMAL)
        assert began.reasons == ("sw_thermal", "hw_thermal")
        assert (began.temperature_celsius, began.sm_clock_mhz) == (93, 1005)
        capped = run.sample(5)
        assert capped.throttle_reasons == ("sw_power_cap",)
        assert capped.power_watts == 699.5
        assert run.sample(3).headroom_celsius == -6

        nvml_scene.write(BUSY)
        ended = run.wait(ThrottleEnded)
        assert (ended.gpu, ended.began_at) == (3, began.at)
        assert (ended.peak_temperature_celsius, ended.lowest_sm_clock_mhz) == (93, 1005)
        throttled = {event.gpu for event in run.events if isinstance(event, ThrottleBegan)}
        assert throttled == {3}


def test_a_throttle_between_two_samples_is_found_in_the_counters(nvml_scene: NvmlScene) -> None:
    nvml_scene.write(BUSY)
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        run.wait(GpuSamples)
        nvml_scene.write(f"{BUSY}\n6.power_brake_ns 40000000\n2.hw_thermal_ns 30000000")
        brake = run.wait(ThrottleBegan, lambda event: event.gpu == 6)
        heat = run.wait(ThrottleBegan, lambda event: event.gpu == 2)
        assert (brake.kind, heat.kind) == (ThrottleKind.POWER_BRAKE, ThrottleKind.THERMAL)
        ended = run.wait(ThrottleEnded, lambda event: event.gpu == 2)
        assert ended.at - ended.began_at == pytest.approx(0.03)
        assert run.sample(2).throttle_thermal_s == pytest.approx(0.03)
        assert run.sample(6).throttle_power_s == pytest.approx(0.04)


@pytest.mark.parametrize("seen_by", ["bits", "counters"])
def test_a_throttle_of_a_fifth_of_a_second_is_never_missed(
    nvml_scene: NvmlScene, seen_by: str
) -> None:
    """One card after the other, so that the throttles fall anywhere between two sweeps."""
    nvml_scene.write(BUSY)
    counted = ""
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        run.wait(GpuSamples)
        for gpu in range(8):
            if seen_by == "counters":
                counted += f"{gpu}.hw_thermal_ns 200000000\n"
                time.sleep(0.13)
            else:
                nvml_scene.write(f"{BUSY}\n{gpu}.reasons 0x40")
                time.sleep(0.2)
            nvml_scene.write(f"{BUSY}\n{counted}")
        for gpu in range(8):
            run.wait(ThrottleEnded, partial(is_of, gpu))
        begins = [event for event in run.events if isinstance(event, ThrottleBegan)]
        ends = [event for event in run.events if isinstance(event, ThrottleEnded)]
    assert sorted(event.gpu for event in begins) == [*range(8)]
    assert sorted(event.gpu for event in ends) == [*range(8)]
    assert {event.reasons for event in begins} == {("hw_thermal",)}
    assert all(0 < event.at - event.began_at <= 0.35 for event in ends)


def test_the_slow_values_of_one_card_do_not_delay_the_fast_ones_of_the_next(
    nvml_scene: NvmlScene,
) -> None:
    slow = "*.delay_us.nvmlDeviceGetTotalEnergyConsumption 10000"
    nvml_scene.write(f"gpus 8\n{slow}\n*.power_mw 0+100000")
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        run.wait(GpuSamples)
        event = run.wait(GpuSamples)  # the first sweep reads all slow values: 80 ms
        powers = [sample.power_watts or 0.0 for sample in event.samples]
        assert max(powers) - min(powers) < 3.0  # at 100 W/s, 30 ms


def test_a_lost_card_leaves_the_others_live(nvml_scene: NvmlScene) -> None:
    nvml_scene.write(BUSY)
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        run.sample(4)
        nvml_scene.write(f"{BUSY}\n4.err.* GPU_IS_LOST")
        lost = run.wait(GpuReadFailed)
        assert (lost.gpu, lost.lost) == (4, True)
        assert "GPU is lost" in lost.error
        for _ in range(3):
            event = run.wait(GpuSamples, after=len(run.events))
            assert [sample.gpu for sample in event.samples] == [0, 1, 2, 3, 5, 6, 7]
        assert len([event for event in run.events if isinstance(event, GpuReadFailed)]) == 1


def test_a_card_that_is_lost_from_the_start_is_listed(nvml_scene: NvmlScene) -> None:
    nvml_scene.write("gpus 2\n1.err.* GPU_IS_LOST")
    code, events = once(nvml_scene)
    assert code == 0
    source, lost, samples, _ = events
    assert isinstance(source, GpuSourceChanged)
    assert [info.name for info in source.gpus] == ["NVIDIA H200", "GPU 1"]
    assert isinstance(lost, GpuReadFailed)
    assert (lost.gpu, lost.lost) == (1, True)
    assert isinstance(samples, GpuSamples)


def test_what_a_card_does_not_offer_is_none_and_no_failure(nvml_scene: NvmlScene) -> None:
    nvml_scene.write(
        "0.temp_mem -1\n1.util -1\n2.energy_mj -1\n3.mem_total -1\n4.sw_power_cap_ns -1"
    )
    _, events = once(nvml_scene)
    samples = samples_of(events)
    assert samples[0].memory_temperature_celsius is None
    assert samples[1].utilization_percent is None
    assert samples[2].energy_joules is None
    assert samples[3].memory_used_bytes is None
    assert samples[4].throttle_power_s == 0
    assert not any(isinstance(event, GpuReadFailed) for event in events)


@pytest.mark.parametrize("sentinel", ["*.temp_mem 255", "*.temp_mem 4294967295"])
def test_a_sensor_that_is_not_there_is_none(nvml_scene: NvmlScene, sentinel: str) -> None:
    nvml_scene.write(f"gpus 1\n{sentinel}\n0.power_mw 4294967295")
    _, events = once(nvml_scene)
    (sample,) = samples_of(events).values()
    assert (sample.memory_temperature_celsius, sample.power_watts) == (None, None)
    assert (sample.power_peak_watts, sample.power_mean_watts) == (None, None)
    assert sample.temperature_celsius == 36


def test_an_older_driver_is_read_by_its_older_calls(nvml_scene: NvmlScene) -> None:
    nvml_scene.write(
        f"""{SCENE}
        *.err.nvmlDeviceGetCurrentClocksEventReasons FUNCTION_NOT_FOUND
        *.err.nvmlDeviceGetMemoryInfo_v2 FUNCTION_NOT_FOUND
        *.sw_thermal_ns -1
        *.hw_thermal_ns -1
        *.power_brake_ns -1
        """
    )
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        sample = run.sample(3)
        assert sample.throttle_reasons == ("sw_thermal", "hw_thermal")
        assert sample.memory_used_bytes == 130000000000 + 641335296
        nvml_scene.write(f"{BUSY}\n1.thermal_violation_ns 20000000")
        began = run.wait(ThrottleBegan, lambda event: event.gpu == 1)
        assert (began.kind, began.reasons) == (ThrottleKind.THERMAL, ("thermal",))
        assert not any(isinstance(event, GpuReadFailed) for event in run.events)


def test_a_newer_driver_without_the_old_calls_is_read_too(nvml_scene: NvmlScene) -> None:
    nvml_scene.write(
        """gpus 2
        *.err.nvmlDeviceGetTemperature FUNCTION_NOT_FOUND
        *.err.nvmlDeviceGetTemperatureThreshold NOT_SUPPORTED
        0.margin 23
        1.margin -5
        """
    )
    _, events = once(nvml_scene)
    first, second = samples_of(events).values()
    assert (first.temperature_celsius, first.headroom_celsius) == (36, 23)
    assert second.headroom_celsius is None


def test_a_failed_read_is_told_once_and_the_other_values_stay(nvml_scene: NvmlScene) -> None:
    nvml_scene.write("gpus 2\n1.err.nvmlDeviceGetPowerUsage NO_PERMISSION")
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        failed = run.wait(GpuReadFailed)
        assert (failed.gpu, failed.call) == (1, "nvmlDeviceGetPowerUsage")
        assert "Insufficient Permissions" in failed.error
        assert not failed.lost
        for _ in range(3):
            sample = run.sample(1)
            assert (sample.power_watts, sample.temperature_celsius) == (None, 36)
        nvml_scene.write("gpus 2")
        run.sample(1, lambda sample: sample.power_watts is not None)
        assert len([event for event in run.events if isinstance(event, GpuReadFailed)]) == 1


def test_what_the_driver_records_and_counts_by_itself(nvml_scene: NvmlScene) -> None:
    nvml_scene.write(
        "gpus 2\n*.power_mw 500000\n0.power_peak_mw 885000\n1.power_peak_mw -1\n"
        "*.pcie_tx 7000\n*.nvlink_rx_kib 3\n"
        "*.fan 40\n1.fan -1\n*.ecc_corrected 12\n*.mem_util 8\n1.nvlink_tx_kib -1"
    )
    _, events = once(nvml_scene)
    samples = samples_of(events)
    first, second = samples[0], samples[1]
    assert (first.power_watts, first.power_peak_watts) == (500, 885)
    assert first.power_mean_watts is not None
    assert 500 < first.power_mean_watts < 520  # one of a hundred and more samples is the peak
    assert (second.power_peak_watts, second.power_mean_watts) == (None, None)
    assert (first.pcie_tx_bytes, first.nvlink_rx_bytes) == (7000, 3072)
    assert (first.nvlink_tx_bytes, second.nvlink_tx_bytes) == (0, None)
    assert (first.fan_percent, second.fan_percent) == (40, None)
    assert (first.ecc_corrected, first.ecc_uncorrected) == (12, 0)
    assert first.memory_utilization_percent == 8
    assert not [event for event in events if isinstance(event, GpuReadFailed)]


def test_a_card_in_mig_mode_names_its_parts_and_no_utilisation(nvml_scene: NvmlScene) -> None:
    nvml_scene.write("gpus 2\n*.util 50\n1.mig 2")
    _, events = once(nvml_scene)
    whole, split = samples_of(events).values()
    assert (whole.utilization_percent, split.utilization_percent) == (50, None)
    assert split.memory_used_bytes is not None
    (source,) = (event for event in events if isinstance(event, GpuSourceChanged))
    assert source.gpus[0].mig_uuids == ()
    parts = source.gpus[1].mig_uuids
    assert len(set(parts)) == 2
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": f"{parts[1]},0"}, source.gpus).gpus == (1, 0)


def test_an_xid_is_a_finding(nvml_scene: NvmlScene) -> None:
    nvml_scene.write("event 1 2 xid 31")
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        run.wait(GpuSamples)
        nvml_scene.write("event 1 2 xid 31\nevent 2 5 xid 79")
        finding = run.wait(Finding)
        assert (finding.kind, finding.source, finding.subject) == ("xid", "gpu", "gpu:5")
        assert finding.checks[0] == "at once: restart the host"
        live = run.wait(GpuSourceChanged, lambda event: event.state is GpuSourceState.LIVE)
        assert live.event_sources[0] == "nvml"
        assert finding.severity is Severity.CRITICAL
        assert finding.message == "XID 79: GPU has fallen off the bus"
        assert "power cables" in finding.first_check


@pytest.mark.parametrize(
    ("scenario", "source", "state", "words"),
    [
        ("*.err.nvmlInit* DRIVER_NOT_LOADED", "auto", "none", ["Driver Not Loaded", "modprobe"]),
        ("*.err.nvmlInit* DRIVER_NOT_LOADED", "nvml", "failed", ["Driver Not Loaded", "modprobe"]),
        ("*.err.nvmlInit* LIB_RM_VERSION_MISMATCH", "auto", "failed", ["mismatch", "reboot"]),
        ("*.err.nvmlInit* NO_PERMISSION", "nvml", "failed", ["Permissions", "/dev/nvidia"]),
        ("*.err.nvmlInit* UNKNOWN", "nvml", "failed", ["Unknown Error", "container"]),
        ("gpus 0", "auto", "none", ["finds no card"]),
        ("gpus 2\n*.err.* GPU_IS_LOST", "nvml", "failed", ["none of the host's 2 cards", "lost"]),
    ],
)
def test_a_source_that_does_not_open_says_why_and_what_to_do(
    nvml_scene: NvmlScene, scenario: str, source: str, state: str, words: list[str]
) -> None:
    nvml_scene.write(scenario)
    code, (event,) = once(nvml_scene, source)
    assert code != 0
    assert isinstance(event, GpuSourceChanged)
    assert event.state == state
    for word in words:
        assert word in event.detail


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("*.err.* UNINITIALIZED", "unloaded or restarted"),
        ("*.err.* LIB_RM_VERSION_MISMATCH", "was replaced under the running kernel module"),
        ("*.err.* RESET_REQUIRED", "drain it and reset it"),
        ("*.err.* UNKNOWN", "no card answers any more: nvmlDeviceGetTemperature: Unknown Error"),
    ],
)
def test_a_driver_that_goes_away_is_told_in_words(
    nvml_scene: NvmlScene, scenario: str, words: str
) -> None:
    nvml_scene.write("gpus 2")
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        run.wait(GpuSamples)
        nvml_scene.write(f"gpus 2\n{scenario}")
        gone = run.wait(GpuSourceChanged, lambda event: event.state is GpuSourceState.FAILED)
        assert words in gone.detail
        assert run.process.wait(10) != 0


def test_what_the_library_prints_does_not_reach_the_frames(nvml_scene: NvmlScene) -> None:
    nvml_scene.write("gpus 1\n*.say.nvmlDeviceGetTemperature noise from the driver")
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        for _ in range(3):
            assert run.sample(0).temperature_celsius == 36


def test_the_sampler_ends_with_its_agent_also_inside_a_call(nvml_scene: NvmlScene) -> None:
    nvml_scene.write("gpus 1")
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        run.sample(0)
        nvml_scene.write("gpus 1\n*.delay_us.nvmlDeviceGetTemperature 60000000")
        before = len(run.events)
        with pytest.raises(subprocess.TimeoutExpired):
            run.process.wait(0.4)
        assert len(run.events) - before <= 2  # it hangs
        run.close_stdin()
        assert run.process.wait(5) == 0


@pytest.mark.parametrize("refused", ["", "*.err.nvmlDeviceGetComputeRunningProcesses_v3 13"])
def test_who_computes_on_a_card_is_told_when_it_changes(
    nvml_scene: NvmlScene, refused: str
) -> None:
    here = os.getpid()
    nvml_scene.write(f"gpus 2\n{refused}\n1.process {here} 7340032\n1.process 99999999\n")
    with SamplerRun("nvml", nvml_scene.environment()) as run:
        told = run.wait(GpuProcesses)
        ours, gone = told.processes
        assert (ours.gpu, ours.pid, ours.memory_bytes) == (1, here, 7340032)
        assert ours.name
        assert {here, os.getsid(here)} <= set(ours.belongs_to)
        assert (gone.name, gone.memory_bytes, gone.belongs_to) == ("", None, ())


def test_a_driver_that_does_not_tell_its_processes_is_no_driver_without_any(
    nvml_scene: NvmlScene,
) -> None:
    nvml_scene.write("gpus 2\n*.err.nvmlDeviceGetComputeRunningProcesses* NOT_SUPPORTED")
    _, events = once(nvml_scene)
    assert not [event for event in events if isinstance(event, GpuProcesses)]
    nvml_scene.write("gpus 2\n1.err.nvmlDeviceGetComputeRunningProcesses* NO_PERMISSION")
    _, events = once(nvml_scene)
    (told,) = (event for event in events if isinstance(event, GpuProcesses))
    assert told.processes == ()
