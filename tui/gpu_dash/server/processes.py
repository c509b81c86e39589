"""Processes as ``/proc`` shows them: identity, and the members of a session."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import psutil

from gpu_dash.model.server import ProcessIdentity

_STATE, _SESSION, _START_TICKS = 2, 5, 21
"""Positions in ``/proc/PID/stat`` counted from the pid; proc(5) counts them from one."""


@functools.cache
def boot_id() -> str:
    """The kernel's name for this boot: start ticks mean something only within one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class ProcessStat:
    """The fields of ``/proc/PID/stat`` that a supervisor needs."""

    pid: int
    state: str
    session: int
    start_ticks: int

    @property
    def is_zombie(self) -> bool:
        """It has ended and waits to be reaped: it holds nothing any more."""
        return self.state in ("Z", "X")


def read_stat(pid: int) -> ProcessStat | None:
    """What the kernel says of a process; ``None`` if there is none of that pid."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in brackets may hold blanks and brackets itself: count from the last one.
    after_name = text.rpartition(")")[2].split()
    offset = 2
    return ProcessStat(
        pid=pid,
        state=after_name[_STATE - offset],
        session=int(after_name[_SESSION - offset]),
        start_ticks=int(after_name[_START_TICKS - offset]),
    )


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of a living process."""
    stat = read_stat(pid)
    if stat is None or stat.is_zombie:
        return None
    return ProcessIdentity(pid=pid, start_ticks=stat.start_ticks, boot_id=boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether that very process still runs (not a later one with the same pid, no zombie)."""
    return identity.boot_id == boot_id() and identify(identity.pid) == identity


def environment_of(identity: ProcessIdentity) -> dict[str, str] | None:
    """The environment that a process of ours was started with; ``None`` if it is gone."""
    try:
        data = Path(f"/proc/{identity.pid}/environ").read_bytes()
    except OSError:
        return None
    if not is_alive(identity):
        return None
    words = (os.fsdecode(word).partition("=") for word in data.split(b"\0"))
    return {name: value for name, separator, value in words if separator}


def started_at_s(identity: ProcessIdentity) -> float:
    """When a process was started, in seconds since the epoch; 0 if it is gone."""
    try:
        created: float = psutil.Process(identity.pid).create_time()
    except psutil.Error:
        return 0.0
    return created if is_alive(identity) else 0.0


def session_members(leader: ProcessIdentity) -> list[int]:
    """Pids of the living processes of a session, whether its leader still lives or not.

    The kernel does not give a session's number to another process while a member lives, so a
    member that is older than the leader can only belong to somebody else's, earlier session.
    """
    if leader.boot_id != boot_id():
        return []
    members = []
    for pid in psutil.pids():
        stat = read_stat(pid)
        if (
            stat is not None
            and stat.session == leader.pid
            and not stat.is_zombie
            and stat.start_ticks >= leader.start_ticks
        ):
            members.append(pid)
    return members


def signal_process(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal that very process; False if it is gone.

    A pidfd is opened first and the identity checked after, so that a pid which is given to
    another process in between is never signalled.
    """
    try:
        handle = os.pidfd_open(identity.pid)
    except OSError:
        return False
    try:
        if not is_alive(identity):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def reap_in_background(process: subprocess.Popen[bytes]) -> None:
    """Let a child live on without us; should it end first, it does not stay a zombie."""
    threading.Thread(target=process.wait, name=f"reap-{process.pid}", daemon=True).start()


def signal_session(leader: ProcessIdentity, number: signal.Signals) -> None:
    """Signal every living member of a session."""
    for pid in session_members(leader):
        member = identify(pid)
        if member is not None:
            signal_process(member, number)
