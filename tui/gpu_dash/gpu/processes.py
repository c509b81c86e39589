"""The processes that compute on the cards: who they are, where this host's kernel tells it.

A driver names processes by the pids of the host. In a container with pids of its own those are
other numbers, or nothing at all; there a pid is believed only if the process behind it here has a
GPU's device open.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_dash.model.gpu import GpuProcess
from gpu_dash.model.text import one_line

PROC = Path("/proc")
HOST_PIDS = "pid:[4026531836]"
"""Name of the first pid namespace (``PROC_PID_INIT_INO`` in Linux's ``proc_ns.h``)."""
NOT_OURS = (
    "the driver names processes by the host's pids, which this container does not see: the "
    "server's cards are known by its visible devices alone"
)
_DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dri")
_GENERATIONS = 16


@dataclass(frozen=True, slots=True)
class Holder:
    """A process on a card, as the driver names it."""

    gpu: int
    pid: int
    memory_bytes: int | None


def describe_processes(
    holders: Iterable[Holder], proc: Path = PROC
) -> tuple[tuple[GpuProcess, ...], str]:
    """The processes by card and pid, and what a person should know about them."""
    named = sorted(holders, key=lambda holder: (holder.gpu, holder.pid))
    foreign = not _has_host_pids(proc)
    described = tuple(_describe(holder, proc, must_prove=foreign) for holder in named)
    unseen = bool(described) and not any(process.name for process in described)
    return described, NOT_OURS if foreign and unseen else ""


def _describe(holder: Holder, proc: Path, *, must_prove: bool) -> GpuProcess:
    folder = proc / str(holder.pid)
    stranger = GpuProcess(gpu=holder.gpu, pid=holder.pid, memory_bytes=holder.memory_bytes)
    if must_prove and not _has_device_open(folder):
        return stranger
    try:
        name = _name(folder)
        parents = _parents(holder.pid, proc)
    except OSError:
        return stranger  # ended meanwhile, or hidden from this account
    return GpuProcess(
        gpu=holder.gpu,
        pid=holder.pid,
        memory_bytes=holder.memory_bytes,
        name=name,
        belongs_to=parents,
    )


def _name(folder: Path) -> str:
    """What the process calls itself: the first word of its command line where that is a title such
    as ``VLLM::Worker_TP0``, else the kernel's name, which ends after 15 characters."""
    name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    title = words.split(" ", 1)[0]
    return one_line(title if name and title.startswith(name) else name)


def _parents(pid: int, proc: Path) -> tuple[int, ...]:
    """The process itself, the leader of its session, and its ancestors."""
    chain: list[int] = []
    session = 0
    while pid > 1 and pid not in chain and len(chain) < _GENERATIONS:
        parent, its_session = _parent_and_session(proc / str(pid))
        session = session or its_session
        chain.append(pid)
        pid = parent
    return tuple(dict.fromkeys([*chain[:1], session, *chain[1:]]))


def _parent_and_session(folder: Path) -> tuple[int, int]:
    """Fields 4 and 6 of ``/proc/PID/stat``; the name before them may hold blanks and brackets."""
    text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    after_name: Sequence[str] = text.rpartition(")")[2].split()
    return int(after_name[1]), int(after_name[3])


def _has_host_pids(proc: Path) -> bool:
    try:
        return os.readlink(proc / "self/ns/pid") == HOST_PIDS
    except OSError:
        return True


def _has_device_open(folder: Path) -> bool:
    try:
        return any(os.readlink(entry).startswith(_DEVICES) for entry in (folder / "fd").iterdir())
    except OSError:
        return False
