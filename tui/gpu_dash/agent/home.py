"""Where an agent lives on disk: lock, socket, state file.

One folder per agent under ``$XDG_STATE_HOME/gpu-dash/<machine id>/agents/``: ``main`` for the
user's own, ``run-PID`` and ``demo-PID`` for private ones. Not under ``XDG_RUNTIME_DIR``: logind
removes that at the last logout, which is just the case that an agent must survive. The machine
id keeps two hosts that share a home directory apart.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpu_dash.model.errors import AgentError
from gpu_dash.model.state_folder import state_root

MAX_SOCKET_PATH_BYTES = 100
"""``sun_path`` holds 108 bytes; the rest is room for a temporary suffix."""
_NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "lustre", "gpfs", "ceph"})
MAIN = "main"


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner may enter, or check that an existing one is such.

    Raises:
        AgentError: it belongs to somebody else, or cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise AgentError(f"{path} is not a folder of yours; move it away or set XDG_STATE_HOME")
        if status.st_mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise AgentError(
            f"{path}: {error.strerror}; set XDG_STATE_HOME to a folder that you can write"
        ) from error
    return path


@dataclass(frozen=True)
class AgentHome:
    """The files of one agent."""

    name: str
    folder: Path

    @classmethod
    def named(cls, name: str) -> AgentHome:
        """The home of the agent of that name, whether it runs or not."""
        return cls(name=name, folder=state_root() / "agents" / name)

    @property
    def lock_path(self) -> Path:
        """Held by flock for as long as the agent lives."""
        return self.folder / "lock"

    @property
    def state_path(self) -> Path:
        """What the next agent needs to adopt the server."""
        return self.folder / "state.json"

    @property
    def log_path(self) -> Path:
        """What the agent itself has to say: its own faults."""
        return self.folder / "agent.log"

    @property
    def socket_path(self) -> Path:
        """The socket: beside the lock, or in ``/tmp`` if that path is too long or on a network
        file system, where a socket cannot be reached or not be made."""
        beside = self.folder / "socket"
        if len(os.fsencode(beside)) <= MAX_SOCKET_PATH_BYTES and not _on_network(self.folder):
            return beside
        tag = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path("/tmp") / f"gpu-dash-{os.geteuid()}" / f"{tag}.socket"

    def prepare(self) -> None:
        """Make the folders, private to the user.

        Raises:
            AgentError: one of them cannot be made or belongs to somebody else.
        """
        for folder in (state_root(), self.folder.parent, self.folder):
            private_folder(folder)
        if self.socket_path.parent != self.folder:
            private_folder(self.socket_path.parent)

    def acquire(self) -> int | None:
        """Take the lock; the open file descriptor, or ``None`` if another agent holds it."""
        self.prepare()
        handle = os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return handle

    def remove(self) -> None:
        """Remove what a private agent leaves behind when it has ended."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.socket_path.unlink()

    def answers(self) -> bool:
        """Whether an agent takes connections here: a killed one leaves its socket behind."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(str(self.socket_path))
            except OSError:
                return False
        return self.is_running()

    def is_running(self) -> bool:
        """Whether an agent holds this home's lock."""
        try:
            handle = os.open(self.lock_path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        else:
            return False
        finally:
            os.close(handle)


def all_homes() -> Iterator[AgentHome]:
    """The homes on this host, running or not, ``main`` first."""
    folder = state_root() / "agents"
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    except OSError:
        return
    for name in sorted(names, key=lambda name: (name != MAIN, name)):
        yield AgentHome(name=name, folder=folder / name)


def _on_network(folder: Path) -> bool:
    """Whether a folder (or its nearest existing parent) lies on a network file system."""
    while not folder.exists():
        folder = folder.parent
    best, kind = "", ""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                _, point, fs_type, *_ = line.split(" ")
                inside = point == "/" or str(folder).startswith(point + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, fs_type
    except OSError:
        return False
    return kind in _NETWORK_FILE_SYSTEMS or kind.startswith("fuse.sshfs")
