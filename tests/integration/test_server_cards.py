"""From the variables of a launch, through the server's log, to a card of the host."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from gpu_dash.record.meta import read_meta
from tests.fakes.nvml.scene import NvmlScene
from tests.integration.commands import gpu_dash, write_profile

pytest_plugins = ["tests.fakes.nvml.fixture"]


def test_a_rank_of_the_log_is_a_card_of_the_host(nvml_scene: NvmlScene, tmp_path: Path) -> None:
    """Two workers on the cards 2 and 0 of four; a collective of theirs times out."""
    nvml_scene.write("gpus 4\n*.util 95")
    profile = write_profile(tmp_path, flags='sim-fault = "nccl_timeout@1"')
    environment = {
        **nvml_scene.environment(),
        "CUDA_VISIBLE_DEVICES": "GPU-fa4e0000-0000-4000-8000-000000000002,0",
    }
    out = tmp_path / "out"
    gpu_dash(
        *("run", str(profile), "--gpu", "nvml", "--step", "1s", "--out", str(out)),
        env={**os.environ, **environment},
    )
    meta = read_meta(out)
    assert meta is not None
    assert meta.visible_gpus == (2, 0)
    with (out / "events.csv").open(encoding="utf-8", newline="") as file:
        subjects = {row["subject"] for row in csv.DictReader(file) if row["source"] == "log"}
    assert subjects & {"rank:0 gpu:2", "tp:0 gpu:2", "rank:1 gpu:0", "tp:1 gpu:0"}, subjects


def test_a_variable_that_names_no_card_is_refused_with_its_words(
    nvml_scene: NvmlScene, tmp_path: Path
) -> None:
    nvml_scene.write("gpus 4")
    environment = {**nvml_scene.environment(), "CUDA_VISIBLE_DEVICES": "1,GPU-ffff"}
    refused = gpu_dash(
        *("run", str(write_profile(tmp_path)), "--gpu", "nvml"), env={**os.environ, **environment}
    )
    assert refused.returncode == 2
    assert "CUDA_VISIBLE_DEVICES=1,GPU-ffff: 'GPU-ffff' names no card" in refused.stderr
