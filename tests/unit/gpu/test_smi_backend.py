"""The vendor's command as the last resort, played by a script on the PATH."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpu_dash.gpu.backend import SourceAbsent
from gpu_dash.gpu.smi_backend import SmiBackend
from gpu_dash.model.errors import GpuSourceError
from tests.fakes.clock import ManualClock

ONE_CARD = [{"gpu": 0, "power": {"socket_power": {"value": 158, "unit": "W"}}}]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(programs: Path, name: str, output: str, code: int = 0) -> None:
    program = programs / name
    program.write_text(f"#!/bin/sh\necho '{output}'\nexit {code}\n")
    program.chmod(0o755)


def test_the_command_is_asked_once_a_second(programs: Path, clock: ManualClock) -> None:
    install(programs, "amd-smi", json.dumps(ONE_CARD))
    backend = SmiBackend(clock)
    backend.open()
    assert [info.gpu for info in backend.gpus] == [0]
    assert backend.sweep().readings[0].sample.power_watts == 158
    install(programs, "amd-smi", json.dumps(ONE_CARD).replace("158", "300"))
    clock.advance(0.5)
    assert backend.sweep().readings == ()
    clock.advance(0.5)
    assert backend.sweep().readings[0].sample.power_watts == 300


def test_the_older_command_is_taken_where_the_newer_is_missing(
    programs: Path, clock: ManualClock
) -> None:
    install(programs, "rocm-smi", '{"card0": {"GPU use (%)": "7"}}')
    backend = SmiBackend(clock)
    backend.open()
    assert backend.sweep().readings[0].sample.utilization_percent == 7
    assert "rocm-smi" in backend.detail


def test_a_command_that_names_no_card_is_quoted(programs: Path, clock: ManualClock) -> None:
    install(programs, "rocm-smi", "ERROR: Driver not initialized (amdgpu not found)", 2)
    with pytest.raises(SourceAbsent, match=r"no `amd-smi` on the PATH; .*Driver not initialized"):
        SmiBackend(clock).open()


def test_a_command_that_stops_working_is_a_lost_source(programs: Path, clock: ManualClock) -> None:
    install(programs, "amd-smi", json.dumps(ONE_CARD))
    backend = SmiBackend(clock)
    backend.open()
    backend.sweep()
    install(programs, "amd-smi", "", 1)
    clock.advance(1.0)
    with pytest.raises(GpuSourceError, match="`amd-smi` names no card"):
        backend.sweep()
