"""Shapes and spellings of saved outputs that the real cases do not hold."""

from __future__ import annotations

import json
import struct
from typing import Any

import msgspec
import pytest

from gpu_dash.gpu.saved.reading import read_saved

CONCISE = """\
WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status
==================================== ROCm System Management Interface ====================
Device  Node  IDs              Temp        Power     Partitions          SCLK    MCLK    Fan  \
Perf  PwrCap  VRAM%  GPU%
\x1b[3m              (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)          \x1b[0m
==========================================================================================
0       2     0x74a1,   10931  48.0°C      135.0W    NPS1, DPX, 0        124Mhz  900Mhz  0%   \
auto  750.0W  0%     7%
1       3     N/A,      6834   N/A         N/A       N/A, N/A, 1         N/A     N/A     0%   \
n/a   N/A     0%     N/A
"""
FRAMED = """\
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:18:00.0 Off |                    0 |
| N/A   34C    P0            120W /  700W |   72034MiB /  81559MiB |     27%      Default |
|   1  NVIDIA H100 80GB HBM3          On  |   00000000:2A:00.0 Off |                    0 |
| N/A   ERR!   ERR!            N/A /  N/A |      0MiB /  81559MiB |     N/A      Default |
"""
TWO_DIES = {
    "card0": {"Device ID": "0x740c", "Average Graphics Package Power (W)": "89.0"},
    "card1": {
        "Device ID": "0x740c",
        "Average Graphics Package Power (W)": "N/A (Secondary die)",
        "Temperature (Sensor edge) (C)": "33.0",
    },
    "card2": {"GPU ID": "0x740c", "Average Graphics Package Power (W)": "0.0"},
}
MONITOR_JSON = [
    {
        "gpu": 3,
        "power_usage": {"value": 130, "unit": "W"},
        "hotspot_temperature": {"value": 40, "unit": "C"},
        "gfx": {"value": 5, "unit": "%"},
        "vram_used": {"value": 283, "unit": "MB"},
        "mem_clock": "N/A",
    }
]
OLD_QUERY = """\
index, name, temperature.gpu, utilization.gpu [%], power.draw [W], clocks_throttle_reasons.active
0, Tesla K80, 30, [Not Supported], [Unknown Error], 0x0000000000000024
1, Tesla K80, 255, 3 %, 50.1 W, 0x0000000000000200
"""
ROCM_CSV = """\
device,Temperature (Sensor edge) (C),Average Graphics Package Power (W),GPU use (%)
card0,49.0,35.0,2
card1,N/A,N/A (Secondary die),0
"""


AMD_FRAME = """\
| AMD-SMI 26.0.0+37d158ab      amdgpu version: 6.14.14  ROCm version: 7.0.0    |
| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
|=====================================+========================================|
| 0000:05:00.0    AMD Instinct MI300X | 2 %      42 °C   0           140/750 W |
|   0       0       7        SPX/NPS1 | 3 %        N/A           283/196592 MB |
|-------------------------------------+----------------------------------------|
| 0000:26:00.0    AMD Instinct MI300X | N/A      N/A     0             N/A/N/A |
|   1       1       5             N/A | N/A        N/A           283/196592 MB |
"""
DMON = """\
# gpu    pwr  gtemp  mtemp     sm    mem    mclk   pclk
# Idx      W      C      C      %      %     MHz    MHz
    0     97     36     37      0      0    3201    345
    1    560     61      -     95     40    3201   1950
    0     98     36     37      1      0    3201    345
"""
AMD_METRIC_CSV = """\
gpu,gfx_activity,umc_activity,socket_power,throttle_status,gfx_0_clk,gfx_0_max_clk,edge,hotspot,mem
0,5,2,132,UNTHROTTLED,132,2100,N/A,41,33
"""
AMD_MONITOR_CSV = """\
timestamp,gpu,power_usage,hotspot_temperature,memory_temperature,gfx_clk,gfx,mem,mem_clock,vram_used
1764547200,0,130,40,33,140,5,1,900,283
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            AMD_FRAME,
            [
                {
                    "gpu": 0,
                    "temperature_celsius": 42,
                    "hotspot_temperature_celsius": 42,
                    "power_watts": 140,
                    "power_limit_watts": 750,
                    "utilization_percent": 3,
                    "memory_utilization_percent": 2,
                    "ecc_uncorrected": 0,
                    "memory_used_bytes": 283 * 2**20,
                    "memory_total_bytes": 196592 * 2**20,
                },
                {
                    "gpu": 1,
                    "ecc_uncorrected": 0,
                    "memory_used_bytes": 283 * 2**20,
                    "memory_total_bytes": 196592 * 2**20,
                },
            ],
            id="framed amd-smi",
        ),
        pytest.param(
            DMON,
            [
                {
                    "gpu": 0,
                    "temperature_celsius": 36,
                    "memory_temperature_celsius": 37,
                    "power_watts": 98,
                    "sm_clock_mhz": 345,
                    "memory_clock_mhz": 3201,
                    "utilization_percent": 1,
                    "memory_utilization_percent": 0,
                },
                {
                    "gpu": 1,
                    "temperature_celsius": 61,
                    "power_watts": 560,
                    "sm_clock_mhz": 1950,
                    "memory_clock_mhz": 3201,
                    "utilization_percent": 95,
                    "memory_utilization_percent": 40,
                },
            ],
            id="nvidia-smi dmon",
        ),
        pytest.param(
            AMD_METRIC_CSV,
            [
                {
                    "gpu": 0,
                    "temperature_celsius": 41,
                    "hotspot_temperature_celsius": 41,
                    "memory_temperature_celsius": 33,
                    "power_watts": 132,
                    "sm_clock_mhz": 132,
                    "utilization_percent": 5,
                    "memory_utilization_percent": 2,
                }
            ],
            id="amd-smi metric CSV",
        ),
        pytest.param(
            AMD_MONITOR_CSV,
            [
                {
                    "gpu": 0,
                    "temperature_celsius": 40,
                    "hotspot_temperature_celsius": 40,
                    "memory_temperature_celsius": 33,
                    "power_watts": 130,
                    "sm_clock_mhz": 140,
                    "memory_clock_mhz": 900,
                    "utilization_percent": 5,
                    "memory_utilization_percent": 1,
                    "memory_used_bytes": 283 * 2**20,
                }
            ],
            id="amd-smi monitor CSV",
        ),
        pytest.param(
            CONCISE,
            [
                {
                    "gpu": 0,
                    "temperature_celsius": 48,
                    "hotspot_temperature_celsius": 48,
                    "power_watts": 135,
                    "power_limit_watts": 750,
                    "sm_clock_mhz": 124,
                    "memory_clock_mhz": 900,
                    "fan_percent": 0,
                    "utilization_percent": 7,
                },
                {"gpu": 1, "fan_percent": 0},
            ],
            id="concise rocm-smi, a partition without values",
        ),
        pytest.param(
            FRAMED,
            [
                {
                    "gpu": 0,
                    "temperature_celsius": 34,
                    "power_watts": 120,
                    "power_limit_watts": 700,
                    "memory_used_bytes": 72034 * 2**20,
                    "memory_total_bytes": 81559 * 2**20,
                    "utilization_percent": 27,
                },
                {"gpu": 1, "memory_used_bytes": 0, "memory_total_bytes": 81559 * 2**20},
            ],
            id="framed nvidia-smi",
        ),
        pytest.param(
            json.dumps(TWO_DIES),
            [
                {"gpu": 0, "power_watts": 89},
                {"gpu": 1, "temperature_celsius": 33},
                {"gpu": 2},
            ],
            id="second die",
        ),
        pytest.param(
            json.dumps(MONITOR_JSON),
            [
                {
                    "gpu": 3,
                    "temperature_celsius": 40,
                    "hotspot_temperature_celsius": 40,
                    "power_watts": 130,
                    "utilization_percent": 5,
                    "memory_used_bytes": 283 * 2**20,
                }
            ],
            id="amd-smi monitor JSON",
        ),
        pytest.param(
            OLD_QUERY,
            [
                {
                    "gpu": 0,
                    "temperature_celsius": 30,
                    "throttle_reasons": ("sw_power_cap", "sw_thermal"),
                },
                {
                    "gpu": 1,
                    "utilization_percent": 3,
                    "power_watts": 50.1,
                    "throttle_reasons": ("0x200",),
                },
            ],
            id="old names, a dead sensor, a bit without a name",
        ),
        pytest.param(
            ROCM_CSV,
            [
                {
                    "gpu": 0,
                    "temperature_celsius": 49,
                    "power_watts": 35,
                    "utilization_percent": 2,
                },
                {"gpu": 1, "utilization_percent": 0},
            ],
            id="rocm-smi CSV",
        ),
    ],
)
def test_cards_of(text: str, expected: list[dict[str, Any]]) -> None:
    samples = [card.sample for card in read_saved(text).cards]
    got = [{k: v for k, v in msgspec.to_builtins(s).items() if v is not None} for s in samples]
    assert got == expected


def test_warnings_around_a_document_do_not_matter() -> None:
    text = f"WARNING: low power\n{json.dumps(TWO_DIES)}\nWARNING: deprecated\n"
    assert len(read_saved(text).cards) == 3
    xml = '<nvidia_smi_log><gpu id="00000000:1B:00.0"><fan_speed>30 %</fan_speed></gpu>'
    (card,) = read_saved(f"note\n<!DOCTYPE x SYSTEM 'y'>\n{xml}</nvidia_smi_log>\nbye").cards
    assert (card.sample.fan_percent, card.info.pci_bus_id) == (30, "0000:1b:00.0")


@pytest.mark.parametrize(("hotspot", "reasons"), [(41, ()), (97, ("hw_thermal",))])
def test_a_lone_hotspot_bit_is_believed_only_when_it_is_hot(
    hotspot: int, reasons: tuple[str, ...]
) -> None:
    table = bytearray(struct.pack("<HBB", 120, 1, 3) + b"\xff" * 108 + struct.pack("<Q", 1 << 36))
    struct.pack_into("<H", table, 6, hotspot)
    (card,) = read_saved(f"card0/device/gpu_metrics.hex:{table.hex()}").cards
    assert card.sample.throttle_reasons == reasons


def test_a_table_of_an_unknown_revision_is_declined_by_name() -> None:
    table = struct.pack("<HBB", 200, 1, 9).ljust(200, b"\0").hex()
    (card,) = read_saved(f"device/gpu_metrics.hex:{table}\ndevice/gpu_busy_percent:4").cards
    assert card.sample.utilization_percent == 4
    assert "v1_9 is not known" in card.other_facts["gpu_metrics_declined"]


@pytest.mark.parametrize(
    "missing",
    ["N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "[Not Found]", "[GPU is lost]",
     "[GPU requires reset]", "[Insufficient Permissions]", "[Reset Required]", "[Deprecated]",
     "Not available in WDDM driver model", "", "ERR!",
     "[Requested functionality has been deprecated]"],
)  # fmt: skip
def test_every_spelling_of_missing_is_no_value(missing: str) -> None:
    head = "index, name, uuid, pstate, temperature.gpu, power.draw [W], clocks.sm [MHz]"
    (card,) = read_saved(f"{head}\n0, {', '.join([missing] * 6)}\n").cards
    assert card.facts == {}


def test_the_first_versions_of_amd_smi_had_other_names() -> None:
    card = {
        "gpu": 0,
        "usage": {"gfx_usage": 7, "mem_usage": 3, "mm_usage_list": "N/A"},
        "fb_usage": {"fb_total": 65536, "fb_used": 10},
        "power": {"average_socket_power": 35, "power_limit": 300, "gfx_voltage": 700},
        "clock": {"gfx": {"cur_clk": 800, "max_clk": 1700}, "mem": {"cur_clk": 1600}},
        "temperature": {"edge_temperature": 31, "hotspot_temperature": 35, "mem_temperature": 40},
        "ecc": {"correctable": 1, "uncorrectable": 0},
        "energy": {"total_energy_consumption": {"value": 2**64 - 1, "unit": "J"}},
    }
    (found,) = read_saved(json.dumps([card])).cards
    sample = found.sample
    assert (sample.temperature_celsius, sample.hotspot_temperature_celsius) == (31, 35)
    assert (sample.memory_temperature_celsius, sample.power_watts) == (40, 35)
    assert (sample.power_limit_watts, sample.sm_clock_mhz, sample.memory_clock_mhz) == (
        300,
        800,
        1600,
    )
    assert (sample.utilization_percent, sample.memory_utilization_percent) == (7, 3)
    assert (sample.memory_used_bytes, sample.memory_total_bytes) == (10 * 2**20, 2**36)
    assert (sample.ecc_corrected, sample.ecc_uncorrected, sample.energy_joules) == (1, 0, None)


def test_a_list_of_amd_cards_tells_where_they_are() -> None:
    text = "GPU: 0\n    BDF: 0000:05:00.0\n    UUID: 12ff74a1-0000-1000-80fd-df85d6daec5e\n"
    (card,) = read_saved(text).cards
    assert (card.info.pci_bus_id, card.info.uuid[:8]) == ("0000:05:00.0", "12ff74a1")


def test_a_list_of_nvidia_cards_names_their_parts() -> None:
    text = (
        "GPU 0: NVIDIA H200 (UUID: GPU-0aaaaaaa-0000-0000-0000-000000000000)\n"
        "  MIG 1g.18gb     Device  0: (UUID: MIG-11111111-0000-0000-0000-000000000000)\n"
        "  MIG 1g.18gb     Device  1: (UUID: MIG-22222222-0000-0000-0000-000000000000)\n"
        "GPU 1: NVIDIA H200 (UUID: GPU-1aaaaaaa-0000-0000-0000-000000000000)\n"
    )
    split, whole = (card.info for card in read_saved(text).cards)
    assert [uuid[:12] for uuid in split.mig_uuids] == ["MIG-11111111", "MIG-22222222"]
    assert (whole.uuid[:12], whole.name, whole.mig_uuids) == ("GPU-1aaaaaaa", "NVIDIA H200", ())


def test_partitions_that_are_not_told_are_none() -> None:
    (_, second) = read_saved(CONCISE).cards
    assert "partitions" not in second.facts


def test_stacks_that_all_say_zero_are_no_stacks() -> None:
    lines = [f"GPU[0]\t\t: Temperature (Sensor HBM {stack}) (C): 0.0" for stack in range(4)]
    (card,) = read_saved("\n".join([*lines, "GPU[0]\t\t: GPU use (%): 3"])).cards
    assert card.sample.hbm_temperatures_celsius is None


@pytest.mark.parametrize("text", ["", "hello\nworld", "{}", "[]", "a,b\n1,2", "GPU is fine"])
def test_nothing_is_invented(text: str) -> None:
    assert read_saved(text).is_empty
