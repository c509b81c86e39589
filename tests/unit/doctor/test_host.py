"""Checks of a host, on simulated cards and on what this machine really has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from gpu_dash.doctor import host
from gpu_dash.doctor.check import Check, CheckStatus
from gpu_dash.model.errors import GpuSourceError


def examined(source: str, needed: int = 1) -> dict[str, Check]:
    return {check.check: check for check in host.examine_host(source, needed)}


def test_cards_are_counted_against_what_a_profile_needs() -> None:
    enough, too_few = examined("sim", 4), examined("sim", 8)

    assert "cards" not in enough
    assert too_few["cards"].status is CheckStatus.FAIL
    assert "needs 8 GPUs and there are 4" in too_few["cards"].detail


def test_a_host_without_a_driver_fails_and_the_other_checks_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_driver(source: str) -> NoReturn:
        raise GpuSourceError("no driver on this host")

    monkeypatch.setattr(host, "read_once", no_driver)
    checks = examined("nvml")

    assert checks["driver"].status is CheckStatus.FAIL
    assert {"shm", "open-files", "orphans", "lingering", "profiler"} <= set(checks)


def test_no_card_is_asked_where_none_is_wanted() -> None:
    assert "driver" not in examined("none")


def test_a_small_shared_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs("/")
    small = os.statvfs_result((4096, 4096, 16384, 16384, 16384, *tuple(real)[5:]))
    monkeypatch.setattr(os, "statvfs", lambda path: small)

    check = examined("none")["shm"]

    assert check.status is CheckStatus.WARN
    assert "--ipc=host" in str(check.action)


@pytest.mark.parametrize(
    ("links", "status", "said"),
    [
        ("GPU0\tX\tNV18\nGPU1\tNV18\tX\n", CheckStatus.OK, "NVLink"),
        ("GPU0\tX\tSYS\nGPU1\tSYS\tX\n", CheckStatus.WARN, "only through the CPUs"),
        ("GPU0\tX\tPIX\nGPU1\tPIX\tX\n", CheckStatus.OK, "PCIe switches"),
    ],
)
def test_links_between_cards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, links: str, status: CheckStatus, said: str
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{links}EOF\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    check = examined("sim")["topology"]

    assert check.status is status
    assert said in check.detail
