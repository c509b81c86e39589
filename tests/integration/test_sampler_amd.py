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
from tests.fakes.amdgpu.chips import MI100, MI210, MI300X, Chip
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


@pytest.mark.parametrize("chip", [MI100, MI210, MI300X], ids=["MI100", "MI210", "MI300X"])
def test_amds_own_tool_agrees(tree: AmdTree, chip: Chip) -> None:
    if shutil.which("rocm-smi") is None or ctypes.util.find_library("rocm_smi64") is None:
        pytest.skip("no rocm-smi to compare with (Debian: rocm-smi librocm-smi64-1)")
    card = tree.add(chip)
    card.write(chip.power_file, 90_000_000)
    card.write("gpu_busy_percent", 10)
    card.write("temp2_input", 45_000)
    if not chip.has_voltage:
        card.write("in0_label", "vddgfx")  # without it the library of Debian 12 does not start
    options = ["--showmaxpower", "--showmeminfo", "vram"]
    compared = ["power_limit_watts", "memory_used_bytes", "memory_total_bytes"]
    if chip.metrics == "v1_3":  # newer tables make that library abort
        options += ["--showtemp", "--showclocks", "--showpower", "--showuse"]
        compared += ["temperature_celsius", "hotspot_temperature_celsius", "power_watts"]
        compared += ["memory_temperature_celsius", "sm_clock_mhz", "memory_clock_mhz"]
        compared += ["utilization_percent"]
    ended = inside(tree, "rocm-smi", *options, "--json")
    backend = AmdBackend(tree.root)
    backend.open()
    (reading,) = backend.sweep().readings
    output = read_saved(ended.stdout)
    assert len(output.cards) == 1, ended.stdout + ended.stderr
    theirs, ours = output.cards[0].sample, reading.sample
    for field in compared:
        assert getattr(theirs, field) == getattr(ours, field), field
