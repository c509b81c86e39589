"""Checks of a host, on simulated cards and on what this machine really has."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import NoReturn

import pytest

from gpu_dash.doctor import host, links
from gpu_dash.doctor.check import Check, CheckStatus
from gpu_dash.doctor.gfx import check_override
from gpu_dash.doctor.settings import check_settings
from gpu_dash.model.errors import GpuSourceError
from gpu_dash.model.events import GpuSourceChanged
from gpu_dash.model.gpu import GpuInfo, GpuSample, GpuSourceState


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


NVIDIA_SMI = """#!/bin/sh
case "$*" in
"topo -m") cat "{folder}/links" ;;
"topo -p2p r") cat "{folder}/access" ;;
--query-gpu*) cat "{folder}/settings" ;;
*) exit 1 ;;
esac
"""
HEAD = "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\x1b[0m\n"


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose files are what ``nvidia-smi`` says."""
    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA_SMI.format(folder=tmp_path))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def linked(cards: int) -> dict[str, Check]:
    return {check.check: check for check in links.check_links(cards)}


def table(*pairs_of: str) -> str:
    """The table of four cards, from the links 0-1, 0-2, 0-3, 1-2, 1-3, 2-3."""
    pairs = dict(zip(itertools.combinations(range(4), 2), pairs_of, strict=True))
    rows = [
        "\t".join(
            [
                f"GPU{row}",
                *(" X " if row == at else pairs[min(row, at), max(row, at)] for at in range(4)),
                "0-63",
                "0",
            ]
        )
        for row in range(4)
    ]
    return HEAD + "\n".join(rows) + "\n\nLegend:\n\n  X    = Self\n"


@pytest.mark.parametrize(
    ("found", "needed", "status", "said"),
    [
        (("NV18",) * 6, 4, CheckStatus.OK, "NV18 between 0-1, 0-2, 0-3, 1-2 … (6 pairs): tensor"),
        (("NODE", "SYS", "SYS", "SYS", "SYS", "NODE"), 4, CheckStatus.WARN, "through the CPUs"),
        (("PIX",) * 6, 4, CheckStatus.OK, "over PCIe"),
        (("NV4", "PHB", "PHB", "PHB", "PHB", "NV4"), 4, CheckStatus.WARN, "only some of them"),
        (("NV4", "SYS", "SYS", "SYS", "SYS", "NV4"), 2, CheckStatus.OK, "NV4 between 0-1: tensor"),
    ],
)
def test_links_between_the_cards_of_the_launch(
    smi: Path, found: tuple[str, ...], needed: int, status: CheckStatus, said: str
) -> None:
    (smi / "links").write_text(table(*found))

    check = linked(needed)["topology"]

    assert check.status is status
    assert said in check.detail


@pytest.mark.parametrize(
    ("access", "status", "said"),
    [
        (("OK",) * 6, CheckStatus.OK, "each other's memory"),
        (("CNS",) * 6, CheckStatus.WARN, "the chipset does not support it"),
        (("OK", "TNS", "TNS", "TNS", "TNS", "OK"), CheckStatus.WARN, "the topology"),
    ],
)
def test_direct_access(smi: Path, access: tuple[str, ...], status: CheckStatus, said: str) -> None:
    (smi / "links").write_text(table(*["PIX"] * 6))
    (smi / "access").write_text(table(*access))

    check = linked(4)["p2p"]

    assert check.status is status
    assert said in check.detail


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        ((), CheckStatus.OK),
        (("identity",), CheckStatus.OK),
        (("identity", "DMA-FQ"), CheckStatus.WARN),
    ],
)
def test_an_iommu_that_translates_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...], status: CheckStatus
) -> None:
    for at, kind in enumerate(kinds):
        (tmp_path / str(at)).mkdir()
        (tmp_path / str(at) / "type").write_text(f"{kind}\n")
    monkeypatch.setattr(links, "IOMMU_GROUPS", tmp_path)

    assert linked(2)["iommu"].status is status


def read(*limits: float) -> tuple[GpuSourceChanged, tuple[GpuSample, ...]]:
    cards = tuple(
        GpuInfo(gpu=gpu, name="NVIDIA H200", power_limit_default_watts=700.0)
        for gpu in range(len(limits))
    )
    changed = GpuSourceChanged(at=0.0, source="nvml", state=GpuSourceState.LIVE, gpus=cards)
    return changed, tuple(
        GpuSample(gpu=gpu, power_limit_watts=limit) for gpu, limit in enumerate(limits)
    )


@pytest.mark.parametrize(
    ("rows", "name", "status", "said"),
    [
        ("0, Enabled, 1980, 1980\n", "persistence", CheckStatus.OK, "stays loaded"),
        ("0, Enabled, 1980, 1980\n1, Disabled, 1980, 1980\n",
         "persistence", CheckStatus.WARN, "off on GPU 1"),
        ("0, Enabled, 1980, 1980\n", "clocks", CheckStatus.OK, "up to 1980 MHz"),
        ("0, Enabled, 1200, 1980\n", "clocks", CheckStatus.WARN, "GPU 0 1200 of 1980 MHz"),
        ("0, Enabled, [N/A], 1980\n", "clocks", CheckStatus.OK, "up to 1980 MHz"),
    ],
)  # fmt: skip
def test_settings_of_the_cards(
    smi: Path, rows: str, name: str, status: CheckStatus, said: str
) -> None:
    (smi / "settings").write_text(rows)

    checks = {check.check: check for check in check_settings(*read(700.0), None)}

    assert checks[name].status is status
    assert said in checks[name].detail


@pytest.mark.parametrize(
    ("limits", "budget", "name", "status", "said"),
    [
        ((700.0, 700.0), None, "power", CheckStatus.OK, "1,400 W together"),
        ((700.0, 700.0), 2000.0, "power", CheckStatus.OK, "of a budget of 2,000 W"),
        ((700.0, 700.0), 1000.0, "power", CheckStatus.FAIL, "the budget is 1,000 W"),
        ((700.0, 500.0), None, "power-limit", CheckStatus.WARN, "GPU 1 500 of 700 W"),
    ],
)
def test_power_limits_against_the_budget(
    limits: tuple[float, ...], budget: float | None, name: str, status: CheckStatus, said: str
) -> None:
    checks = {check.check: check for check in check_settings(*read(*limits), budget)}

    assert checks[name].status is status
    assert said in checks[name].detail
    if status is CheckStatus.FAIL:
        assert "nvidia-smi -pl 500" in str(checks[name].action)


@pytest.mark.parametrize(
    ("versions", "override", "status", "said"),
    [
        ((90008,), "9.0.8", CheckStatus.WARN, "the card's own name"),
        ((90010, 0), "9.0.8", CheckStatus.WARN, "cards here: gfx90a: the runtime is told of"),
        ((), "9.0.8", CheckStatus.OK, "names gfx908 (MI100); cards here: no AMD card"),
        ((90008,), "mi100", CheckStatus.WARN, "is no version"),
    ],
)
def test_an_override_is_shown_beside_the_real_name(
    tmp_path: Path, versions: tuple[int, ...], override: str, status: CheckStatus, said: str
) -> None:
    for at, version in enumerate(versions):
        (tmp_path / str(at)).mkdir()
        (tmp_path / str(at) / "properties").write_text(
            f"cpu_cores_count 0\ngfx_target_version {version}\nsimd_count 4\n"
        )

    check = check_override({"HSA_OVERRIDE_GFX_VERSION": override}, tmp_path)

    assert check is not None
    assert check.status is status
    assert said in check.detail


def test_without_an_override_nothing_is_said() -> None:
    assert check_override({}) is None
