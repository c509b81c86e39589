"""The box with all that is known of the cards, and whose card is whose in the table."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import GpuProcess, GpuSourceState
from gpu_dash.model.server import ServerState, ServerStatus
from gpu_dash.model.workers import Parallel
from gpu_dash.ui.render.card_details import card_detail_rows
from gpu_dash.ui.render.gpu_table import gpu_rows
from gpu_dash.ui.view import View
from tests.ui.scenes import gpu_infos, gpu_sample
from tests.unit.ui.views import view_of

SERVER = ServerStatus(
    state=ServerState.READY, pid=50, visible_gpus=(2, 0), parallel=Parallel(tensor=2)
)
OURS = GpuProcess(
    gpu=2, pid=70, memory_bytes=3 * 2**30, name="VLLM::Worker_TP0", belongs_to=(70, 50)
)
STRANGER = GpuProcess(gpu=0, pid=91, memory_bytes=2**30, name="python", belongs_to=(91, 90))
ON_UNUSED = replace(STRANGER, gpu=1)


def scene(*processes: GpuProcess, detail: str = "", mig: bool = False) -> View:
    infos = gpu_infos(3)
    if mig:
        infos = (infos[0], replace(infos[1], mig_uuids=("MIG-a", "MIG-b")), infos[2])
    return view_of(
        ev.GpuSourceChanged(
            at=0.0,
            source="nvml",
            state=GpuSourceState.LIVE,
            gpus=infos,
            event_sources=("nvml",),
            event_sources_missing=("/dev/kmsg: Operation not permitted; root reads it",),
        ),
        ev.GpuSamples(
            at=0.0,
            samples=tuple(
                replace(gpu_sample(gpu), utilization_percent=None if mig and gpu == 1 else 50.0)
                for gpu in range(3)
            ),
        ),
        ev.ServerChanged(at=0.0, status=SERVER),
        ev.GpuProcesses(at=0.0, processes=processes, detail=detail),
    )


def table(view: View, width: int) -> list[str]:
    return [row.text for row in gpu_rows(view, width, 4, 1, titles=True)]


def test_a_worker_of_the_log_is_a_card_of_the_table() -> None:
    heading, first, second, third = table(scene(), 160)
    assert "nvml · XIDs: nvml" in heading
    assert first.rstrip().endswith("TP1")
    assert second.rstrip().endswith("unused by the server")
    assert third.rstrip().endswith("TP0")


def test_somebody_elses_process_is_named_where_it_is() -> None:
    _, first, second, third = table(scene(OURS, STRANGER, ON_UNUSED), 120)
    assert "TP1 shared with python (91)" in first
    assert "unused: python (91)" in second
    assert third.rstrip().endswith("TP0")


def test_of_a_server_in_a_container_nobody_is_called_a_stranger() -> None:
    inside = ev.ServerChanged(at=1.0, status=replace(SERVER, pid=None))
    view = scene(STRANGER)
    view.store.fold(inside)
    assert table(view, 120)[1].rstrip().endswith("TP1")


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_table_has_at_least_the_sign(width: int) -> None:
    _, first, second, _ = table(scene(STRANGER, ON_UNUSED), width)
    assert "TP1+" in first or "TP1 shared" in first
    assert "unused" in second


def test_a_card_in_mig_mode_has_no_utilisation_rather_than_none() -> None:
    _, first, second, _ = table(scene(mig=True), 120)
    assert "50%" in first
    assert "n/a" in second
    assert "0%" not in second


@pytest.mark.parametrize("width", [72, 110])
def test_the_box_says_everything_and_stays_in_its_width(width: int) -> None:
    rows = card_detail_rows(
        scene(OURS, STRANGER, detail="told in host pids", mig=True).store, width
    )
    assert all(row.width <= width for row in rows)
    text = " ".join(" ".join(row.text.split()) for row in rows)
    for words in (
        "server's TP1",
        "process VLLM::Worker_TP0 (pid 70), 3.0 GiB, the server's",
        "process python (pid 91), 1.0 GiB",
        "busy n/a (MIG)",
        "MIG MIG-a, MIG-b",
        "told in host pids",
        "XIDs and resets are heard from nvml",
        "not from /dev/kmsg: Operation not permitted; root reads it",
    ):
        assert words in text
