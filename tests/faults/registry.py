"""The faults by name, and what several of them look at."""

from __future__ import annotations

from collections.abc import Callable

from gpu_dash.agent.store import Store
from gpu_dash.model.events import Finding
from gpu_dash.model.log import Severity
from gpu_dash.model.server import ServerState
from tests.faults.stage import Play

PLAYS: dict[str, Play] = {}
"""By what breaks."""


def fault(name: str) -> Callable[[Play], Play]:
    """A line of the table."""

    def register(play: Play) -> Play:
        PLAYS[name] = play
        return play

    return register


def has_failed(store: Store) -> bool:
    """Whether the server's end was noticed as one that nobody asked for."""
    return store.server.state is ServerState.FAILED


def alarms(store: Store) -> list[Finding]:
    """What was called critical in the log."""
    return [f for f in store.findings if f.severity is Severity.CRITICAL and f.source == "log"]


def detail(store: Store) -> str:
    """What is said of the server's state."""
    return store.server.detail


def newest_notice(store: Store) -> str:
    """What was said last beside the log."""
    return store.notices[-1].text if store.notices else ""
