"""A server that somebody started by hand: which process it is, where it listens, where it logs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from gpu_dash.model.errors import ServerError, UsageError
from gpu_dash.model.server import ProcessIdentity
from gpu_dash.server.processes import identify


@dataclass(frozen=True)
class FoundServer:
    """A running server of this account."""

    process: ProcessIdentity
    base_url: str
    log: str | None
    """The file that its standard output goes to, if it goes to one."""


def find_server(*, pid: int | None = None, port: int | None = None) -> FoundServer:
    """Find the server with this pid, or the one that listens on this port.

    Raises:
        UsageError: neither or both are given.
        ServerError: there is none, or it is another account's.
    """
    if (pid is None) == (port is None):
        raise UsageError("say which server: --pid N or --port N, one of the two")
    listeners = _listeners()
    if port is not None:
        found = [each for each in listeners if each[2] == port]
        if not found:
            raise ServerError(
                f"no process of this account listens on port {port}; is the server up, and "
                "yours? (ss -ltnp)"
            )
        # Front ends share the socket of the one that made it and started them.
        owner, host, port = min(found, key=lambda each: _started(each[0]))
    else:
        assert pid is not None
        own = [each for each in listeners if each[0] == pid]
        if not own:
            raise ServerError(
                f"process {pid} listens on no port: name the process of the API server, once "
                "it is up, or use --port"
            )
        owner, host, port = min(own, key=lambda each: each[2])
    identity = identify(owner)
    if identity is None or Path(f"/proc/{owner}").stat().st_uid != os.geteuid():
        raise ServerError(f"process {owner} belongs to another account; its owner can adopt it")
    return FoundServer(identity, _base_url(host, port), _log_of(owner))


def _listeners() -> list[tuple[int, str, int]]:
    """Pid, address and port of every socket of ours that takes connections."""
    return [
        (each.pid, each.laddr.ip, each.laddr.port)
        for each in psutil.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN and each.pid is not None and each.laddr
    ]


def _started(pid: int) -> float:
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return float("inf")


def _base_url(address: str, port: int) -> str:
    if address in ("0.0.0.0", "::", ""):
        address = "127.0.0.1"
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _log_of(pid: int) -> str | None:
    try:
        path = os.readlink(f"/proc/{pid}/fd/1")
    except OSError:
        return None
    return path if Path(path).is_file() else None
