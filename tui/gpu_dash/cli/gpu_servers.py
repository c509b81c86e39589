"""Which of our servers a process on a card belongs to."""

from __future__ import annotations

from collections.abc import Mapping

from gpu_dash.agent.neighbours import running_sessions
from gpu_dash.model.gpu import GpuProcess


def running_servers() -> dict[int, str]:
    """The servers that agents of this account look after: pid → name of the profile or session."""
    return {
        state.status.pid: state.status.profile or state.session
        for state in running_sessions()
        if state.status.pid is not None
    }


def server_of(process: GpuProcess, servers: Mapping[int, str]) -> str | None:
    """The server that a process belongs to, by its session or its ancestors."""
    return next((servers[pid] for pid in process.belongs_to if pid in servers), None)
