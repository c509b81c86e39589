"""What an agent leaves for the next one, should it be killed.

Written whole to a new file that replaces the old one. It holds no secret: of the profile only the
part without the environment, and no key.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from gpu_dash.agent.restarts import RestartRecord
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.load import LoadPlan
from gpu_dash.model.server import ProcessIdentity, ServerStatus
from gpu_dash.server.compose import ComposeRecord
from gpu_dash.server.handles import ContainerRecord, ProcessRecord


class SessionState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session that goes on: enough to adopt its server and to append to its files."""

    session: str
    folder: str
    anchor: ClockAnchor
    boot_id: str
    label: str
    gpu_source: str
    plan: LoadPlan
    status: ServerStatus
    api_key_env: str | None
    ready_timeout_s: float
    shutdown_timeout_s: float
    log: str | None
    process: ProcessRecord | None = None
    container: ContainerRecord | None = None
    compose: ComposeRecord | None = None
    adopted: ProcessIdentity | None = None
    """A server that was started by hand."""
    log_command: tuple[str, ...] = ()
    log_offset: int = 0
    log_lines: int = 0
    has_headers: bool = False
    """Requests carried headers, which only the agent's memory knows."""
    next_step: int = 1
    next_request: int = 1
    restart: RestartRecord | None = None
    """Of a server that is started again when it fails."""


def save_state(path: Path, state: SessionState | None) -> None:
    """Replace the state file; ``None`` removes it.

    Raises:
        OSError: the disk is full or the folder is gone; the old file is whole.
    """
    if state is None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return
    temporary = path.with_suffix(".new")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.encode(state))
    temporary.replace(path)


def load_state(path: Path) -> SessionState | None:
    """The state that an earlier agent left; ``None`` if there is none or it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=SessionState)
    except (OSError, msgspec.DecodeError):
        return None
