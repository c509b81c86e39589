"""Who computes on a card, as far as this host's kernel tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_dash.gpu.amd_processes import holders, kfd_gpu_ids
from gpu_dash.gpu.processes import HOST_PIDS, NOT_OURS, Holder, describe_processes
from gpu_dash.model.gpu import GpuProcess

GIB = 2**30


class Proc:
    """A folder that stands in for ``/proc``."""

    def __init__(self, root: Path, namespace: str = HOST_PIDS) -> None:
        self.root = root
        (root / "self/ns").mkdir(parents=True)
        (root / "self/ns/pid").symlink_to(namespace)

    def add(
        self, pid: int, name: str, parent: int, session: int, title: str = "", device: str = ""
    ) -> None:
        folder = self.root / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "comm").write_text(f"{name[:15]}\n")
        (folder / "cmdline").write_bytes((title or f"/usr/bin/{name}\0--flag").encode())
        (folder / "stat").write_text(f"{pid} ({name[:15]}) S {parent} {session} {session} 0\n")
        if device:
            (folder / "fd/5").symlink_to(device)


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def test_a_worker_belongs_to_its_server_by_session_and_by_descent(proc: Proc) -> None:
    proc.add(50, "vllm", 40, 50)
    proc.add(60, "VLLM::EngineCore", 50, 50)
    proc.add(70, "VLLM::Worker_TP1", 60, 50, title="VLLM::Worker_TP1 ")
    proc.add(40, "keeper (x) y", 1, 40)
    (worker,), detail = describe_processes([Holder(1, 70, GIB)], proc.root)
    assert worker == GpuProcess(
        gpu=1, pid=70, memory_bytes=GIB, name="VLLM::Worker_TP1", belongs_to=(70, 50, 60, 40)
    )
    assert detail == ""


def test_an_orphan_whose_parents_are_gone_is_known_by_its_session(proc: Proc) -> None:
    proc.add(70, "python", 1, 50)
    (process,), _ = describe_processes([Holder(0, 70, None)], proc.root)
    assert (process.name, process.belongs_to) == ("python", (70, 50))


def test_a_process_that_is_gone_or_hidden_stays_a_number(proc: Proc) -> None:
    described, detail = describe_processes([Holder(0, 7, GIB)], proc.root)
    assert described == (GpuProcess(gpu=0, pid=7, memory_bytes=GIB),)
    assert detail == ""


def test_a_number_of_the_hosts_is_not_taken_for_one_of_the_container(tmp_path: Path) -> None:
    proc = Proc(tmp_path, "pid:[4026532999]")
    proc.add(70, "bash", 1, 70)
    described, detail = describe_processes([Holder(0, 70, GIB), Holder(0, 4711, GIB)], proc.root)
    assert [process.name for process in described] == ["", ""]
    assert detail == NOT_OURS


@pytest.mark.parametrize("device", ["/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd"])
def test_in_a_container_an_open_device_is_the_proof(tmp_path: Path, device: str) -> None:
    proc = Proc(tmp_path, "pid:[4026532999]")
    proc.add(70, "python", 1, 70, device=device)
    described, detail = describe_processes([Holder(0, 70, GIB), Holder(1, 9, GIB)], proc.root)
    assert [process.name for process in described] == ["python", ""]
    assert detail == ""


def test_an_evil_name_is_harmless(proc: Proc) -> None:
    proc.add(70, "x\x1b[31m) S 1 1 (", 1, 70)
    (process,), _ = describe_processes([Holder(0, 70, GIB)], proc.root)
    assert "\x1b" not in process.name


def test_the_kernels_compute_driver_tells_for_amd(tmp_path: Path) -> None:
    kfd = tmp_path / "class/kfd/kfd"
    for number, (gpu_id, location, domain) in enumerate(
        [("0", 0, 0), ("10000", 0x300, 0), ("10001", 0xC108, 1)]
    ):
        node = kfd / f"topology/nodes/{number}"
        node.mkdir(parents=True)
        (node / "gpu_id").write_text(f"{gpu_id}\n")
        (node / "properties").write_text(
            f"cpu_cores_count 0\nlocation_id {location}\ndomain {domain}\n"
        )
    assert kfd_gpu_ids(tmp_path) == {"0000:03:00.0": "10000", "0001:c1:01.0": "10001"}
    for pid, held in ((70, {"10000": GIB, "10001": 0}), (71, {"10001": 2 * GIB})):
        folder = kfd / f"proc/{pid}"
        folder.mkdir(parents=True)
        for gpu_id, size in held.items():
            (folder / f"vram_{gpu_id}").write_text(f"{size}\n")
    found = sorted(
        holders(tmp_path, {"10000": 0, "10001": 1}), key=lambda holder: (holder.gpu, holder.pid)
    )
    assert found == [Holder(0, 70, GIB), Holder(1, 71, 2 * GIB)]
