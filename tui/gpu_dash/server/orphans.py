"""Processes of a vLLM whose server is gone: they serve nobody and hold the cards' memory.

vLLM names its processes ``VLLM::EngineCore``, ``VLLM::Worker_TP0``. An engine or a worker is always
somebody's child; when that parent has died, the kernel hands it to a reaper, which lives in another
session. That is the sign.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from gpu_dash.model.server import ProcessIdentity
from gpu_dash.model.text import strip_controls
from gpu_dash.server.processes import identify, is_alive, read_stat, signal_process

TITLE = "VLLM::"
_SERVER_TITLES = ("VLLM::APIServer", "VLLM::ApiServer", "VLLM::APISERVER")
"""The front end may well be a child of the reaper: started with nohup, its shell gone."""
END_GRACE_S = 8.0
KILL_S = 5.0
POLL_S = 0.05


@dataclass(frozen=True)
class Orphan:
    """One process that outlived its server."""

    process: ProcessIdentity
    title: str
    session: int
    age_s: float
    memory_bytes: int
    """Of the host."""
    gpu_memory_bytes: Mapping[int, int]
    """By card, where the driver tells."""

    def __str__(self) -> str:
        words = [f"{self.title} (pid {self.process.pid}, {self.age_s / 60:.0f} min old"]
        words += [
            f"{size / 2**30:.1f} GiB on GPU {gpu}"
            for gpu, size in sorted(self.gpu_memory_bytes.items())
        ]
        return ", ".join(words) + ")"


def find_orphans(gpu_memory: Mapping[int, Mapping[int, int]] | None = None) -> list[Orphan]:
    """The orphans of this account, by session and pid.

    Args:
        gpu_memory: bytes by card, for each process that holds some.
    """
    titled = dict(_titled_processes())
    held = gpu_memory or {}
    orphans = []
    for pid, title in titled.items():
        top = _topmost(pid, titled)
        if title.startswith(_SERVER_TITLES) or not _is_alone(top, titled[top]):
            continue
        identity, stat = identify(pid), read_stat(pid)
        if identity is None or stat is None:
            continue
        orphans.append(
            Orphan(
                process=identity,
                title=title,
                session=stat.session,
                age_s=_age_s(pid),
                memory_bytes=_resident_bytes(pid),
                gpu_memory_bytes=dict(held.get(pid, {})),
            )
        )
    return sorted(orphans, key=lambda orphan: (orphan.session, orphan.process.pid))


def end_orphans(orphans: Iterable[Orphan]) -> list[Orphan]:
    """End these very processes: SIGTERM, a time of grace, SIGKILL; gives those that remain.

    Nothing else of their session is touched: its leader may be the shell of a person.
    """
    left = list(orphans)
    for number, seconds in ((signal.SIGTERM, END_GRACE_S), (signal.SIGKILL, KILL_S)):
        for orphan in left:
            signal_process(orphan.process, number)
        deadline = time.monotonic() + seconds
        while left and time.monotonic() < deadline:
            left = [orphan for orphan in left if is_alive(orphan.process)]
            if left:
                time.sleep(POLL_S)
    return left


def _titled_processes() -> Iterable[tuple[int, str]]:
    """Our processes that vLLM has named."""
    for pid in psutil.pids():
        folder = Path(f"/proc/{pid}")
        try:
            if folder.stat().st_uid != os.geteuid():
                continue
            name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
            if not name.startswith(TITLE):
                continue
            # The kernel's name ends after 15 characters, the command line holds all of it.
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # ended meanwhile
        whole = line.split(" ")[0]
        yield pid, strip_controls(whole if whole.startswith(TITLE) else name)


def _topmost(pid: int, titled: Mapping[int, str]) -> int:
    """The ancestor up to which all are vLLM's."""
    while (parent := _parent(pid)) in titled:
        pid = parent
    return pid


def _is_alone(pid: int, title: str) -> bool:
    """Whether the one who started it is gone."""
    if title.startswith(_SERVER_TITLES):
        return False
    stat, parent = read_stat(pid), _parent(pid)
    if stat is None:
        return False
    above = read_stat(parent)
    if above is None or above.session != stat.session:
        return True
    # A container's first process may be both: a reaper in the same session, or vLLM itself.
    return parent == 1 and not _runs_vllm(1)


def _runs_vllm(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"vllm" in words.lower() or b"python" in words.split(b"\0")[0]


def _parent(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])


def _age_s(pid: int) -> float:
    try:
        return max(0.0, time.time() - psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0


def _resident_bytes(pid: int) -> int:
    try:
        size: int = psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return 0
    return size
