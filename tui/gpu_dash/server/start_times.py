"""How long the stages of a profile's start took the last time: what the next one may be held to."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpu_dash.model.server import ServerState, ServerStatus


class StartTimes(msgspec.Struct, frozen=True):
    """Seconds of one start."""

    stages: dict[str, float] = {}
    ready_s: float | None = None
    """From the launch to ready."""


class StageTimer:
    """Makes the times of a start from what the supervisor says of it."""

    def __init__(self) -> None:
        self._stages: dict[str, float] = {}

    def take(self, before: ServerStatus, after: ServerStatus, at: float) -> StartTimes | None:
        """Take a change; the times if the server became ready by it."""
        if before.state is not ServerState.STARTING:
            return None
        if before.stage and (after.stage != before.stage or after.state is not before.state):
            took = at - before.stage_since
            self._stages[before.stage] = round(self._stages.get(before.stage, 0.0) + took, 1)
        if after.state is not ServerState.READY:
            return None
        return StartTimes(self._stages, after.ready_after_s)


def load_start_times(path: Path, profile: str) -> StartTimes:
    """The times of a profile's last start; empty ones if none is known."""
    return _read(path).get(profile, StartTimes())


def save_start_times(path: Path, profile: str, times: StartTimes) -> None:
    """Keep the times of a start for the next one.

    Raises:
        OSError: they cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode({**_read(path), profile: times}))
    temporary.replace(path)


def _read(path: Path) -> dict[str, StartTimes]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, StartTimes])
    except (OSError, msgspec.DecodeError):
        return {}
