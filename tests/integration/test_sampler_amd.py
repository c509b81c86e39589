"""The reader of sysfs, AMD's library under its own tool, and the sampler on one fake tree.

The tree stands in for ``/sys`` in a mount namespace of its own.
"""

from __future__ import annotations

import ctypes.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpu_dash.gpu.amd import AmdBackend
from gpu_dash.gpu.saved.reading import read_saved
from gpu_dash.model.gpu import GpuSample
from tests.fakes.amdgpu.chips import MI100, MI210, MI250, MI300X, Chip
from tests.fakes.amdgpu.tree import AmdTree

_MOUNT = (
    'mount --rbind /sys/devices/system "$0/devices/system" && mount --rbind "$0" /sys '
    '&& mount -t tmpfs none /dev/shm && exec "$@"'
)
TIMEOUT_S = 60


@pytest.fixture
def tree(tmp_path: Path) -> AmdTree:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare to give a process a /sys of its own")
    tree = AmdTree(tmp_path / "sys")
    refused = inside(tree, "true").returncode
    if refused:
        pytest.skip("this machine allows no mount namespace")
    return tree


def inside(tree: AmdTree, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that sees the tree as ``/sys``."""
    flags = ["-m"] if os.geteuid() == 0 else ["-rm"]
    return subprocess.run(
        ["unshare", *flags, "sh", "-c", _MOUNT, str(tree.root), *command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def rows(tree: AmdTree, source: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "gpu_dash", "gpus", "--gpu", source, "--json"]
    ended = inside(tree, *command)
    assert ended.returncode == 0, ended.stderr
    read: list[dict[str, Any]] = json.loads(ended.stdout)
    return read


@pytest.mark.parametrize("source", ["amd", "auto"])
def test_the_sampler_finds_amd_cards_where_the_kernel_shows_them(
    tree: AmdTree, source: str
) -> None:
    tree.add(MI300X)
    tree.add(MI300X)
    first, second = rows(tree, source)
    assert (first["vendor"], first["name"]) == ("amd", "AMD Instinct MI300X")
    assert second["hotspot_temperature_celsius"] == 42
    assert second["power_limit_watts"] == 750


CHIPS = pytest.mark.parametrize("chip", [MI100, MI210, MI300X], ids=["MI100", "MI210", "MI300X"])


def busy_card(tree: AmdTree, chip: Chip) -> None:
    """A card that draws power and does something."""
    card = tree.add(chip)
    card.write(chip.power_file, 90_000_000)
    card.write("gpu_busy_percent", 10)
    card.write("temp2_input", 45_000)
    card.write("mem_info_vram_used", 3 * 2**30)
    if not chip.has_voltage:
        card.write("in0_label", "vddgfx")  # without it the library of Debian 12 does not start


def ours(tree: AmdTree) -> list[GpuSample]:
    """What the reader of sysfs says."""
    backend = AmdBackend(tree.root)
    backend.open()
    return [reading.sample for reading in backend.sweep().readings]


def by_rocm_smi(tree: AmdTree, *options: str) -> list[GpuSample]:
    """What AMD's own tool says."""
    if shutil.which("rocm-smi") is None or ctypes.util.find_library("rocm_smi64") is None:
        pytest.skip("no rocm-smi to compare with (Debian: rocm-smi librocm-smi64-1)")
    ended = inside(tree, "rocm-smi", *options, "--json")
    cards = read_saved(ended.stdout).cards
    assert cards, ended.stdout + ended.stderr
    return [card.sample for card in cards]


def by_pyrsmi(tree: AmdTree, rocm: Path) -> list[dict[str, Any]]:
    """What AMD's binding says of its library, through our back end, in a process of its own."""
    pytest.importorskip("pyrsmi", reason="no pyrsmi to compare with")
    library = ctypes.util.find_library("rocm_smi64")
    if library is None:
        pytest.skip("no library of ROCm (Debian: librocm-smi64-1)")
    (rocm / "lib").mkdir(parents=True)
    folders = [Path("/usr/lib"), *Path("/usr/lib").glob("*-linux-gnu")]
    (found,) = {(folder / library).resolve() for folder in folders if (folder / library).exists()}
    (rocm / "lib/librocm_smi64.so").symlink_to(found)
    ended = inside(tree, "env", f"ROCM_PATH={rocm}", sys.executable, "-c", _BY_PYRSMI)
    assert ended.returncode == 0, ended.stderr
    samples: list[dict[str, Any]] = json.loads(ended.stdout.splitlines()[-1])
    return samples


_BY_PYRSMI = """
import msgspec
from gpu_dash.gpu.amd_library import AmdLibraryBackend
backend = AmdLibraryBackend()
backend.open()
samples = [reading.sample for reading in backend.sweep().readings]
print(msgspec.json.encode(samples).decode())
"""


@CHIPS
def test_amds_own_tool_agrees(tree: AmdTree, chip: Chip) -> None:
    busy_card(tree, chip)
    options = ["--showmaxpower", "--showmeminfo", "vram"]
    compared = ["power_limit_watts", "memory_used_bytes", "memory_total_bytes"]
    if chip.metrics == "v1_3":  # newer tables make that library abort
        options += ["--showtemp", "--showclocks", "--showpower", "--showuse"]
        compared += ["temperature_celsius", "hotspot_temperature_celsius", "power_watts"]
        compared += ["memory_temperature_celsius", "sm_clock_mhz", "memory_clock_mhz"]
        compared += ["utilization_percent"]
    (theirs,), (our,) = by_rocm_smi(tree, *options), ours(tree)
    for field in compared:
        assert getattr(theirs, field) == getattr(our, field), field


@CHIPS
def test_amds_binding_agrees(tree: AmdTree, chip: Chip, tmp_path: Path) -> None:
    busy_card(tree, chip)
    (theirs,), (our,) = by_pyrsmi(tree, tmp_path / "rocm"), ours(tree)
    assert theirs["memory_used_bytes"] == our.memory_used_bytes == 3 * 2**30
    assert theirs["memory_total_bytes"] == our.memory_total_bytes
    assert theirs["utilization_percent"] == our.utilization_percent == 10
    # its library knows only the average, which an MI300X does not have
    average = None if chip is MI300X else pytest.approx(90.0, abs=0.001)
    assert theirs.get("power_watts") == average
    assert our.power_watts == 90


def test_the_second_die_of_a_card_has_no_power_of_its_own(tree: AmdTree) -> None:
    busy_card(tree, MI250)
    tree.add(MI250, second_die=True)
    first, second = ours(tree)
    assert (first.power_watts, first.power_limit_watts) == (90, 560)
    assert (second.power_watts, second.power_limit_watts) == (None, None)
    theirs, their_second = by_rocm_smi(tree, "--showpower", "--showid", "--showtemp")
    assert theirs.power_watts == 90
    assert their_second.power_watts is None
    assert their_second.temperature_celsius == second.temperature_celsius == 41
