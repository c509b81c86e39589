"""Orphans with the memory that they hold of each card, as a scripted driver tells."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.fakes.nvml.scene import NvmlScene
from tests.integration.commands import gpu_dash, is_running
from tests.orphan import leave_an_orphan

pytest_plugins = ["tests.fakes.nvml.fixture"]
HELD_BYTES = 127 << 30


@pytest.fixture
def orphan() -> Iterator[int]:
    """A worker whose server was killed."""
    pid = leave_an_orphan()
    yield pid
    if is_running(pid):
        os.kill(pid, signal.SIGKILL)


def test_an_orphan_is_shown_with_the_memory_of_its_card(orphan: int, nvml_scene: NvmlScene) -> None:
    nvml_scene.write(f"gpus 3\n0.err.* GPU_IS_LOST\n2.process {orphan} {HELD_BYTES}")
    environment = nvml_scene.environment()

    (row,) = json.loads(gpu_dash("orphans", "--json", env=environment).stdout)
    assert row["pid"] == orphan
    assert row["gpu_memory_bytes"] == {"2": HELD_BYTES}
    shown = gpu_dash("orphans", "--end", "--yes", env=environment)

    assert f"VLLM::Worker (pid {orphan}" in shown.stdout
    assert "127.0 GiB on GPU 2" in shown.stdout
    assert not is_running(orphan)


def test_without_a_driver_an_orphan_is_shown_all_the_same(
    orphan: int, nvml_scene: NvmlScene
) -> None:
    nvml_scene.write("*.err.nvmlInit* DRIVER_NOT_LOADED")

    (row,) = json.loads(gpu_dash("orphans", "--json", env=nvml_scene.environment()).stdout)

    assert row["gpu_memory_bytes"] == {}
