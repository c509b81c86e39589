"""How the dashboard gets its store and sends commands.

The dashboard does not know whether it looks at a live agent, a recorded session or a script of a
test: each is a :class:`Feed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gpu_dash.agent.store import Store
from gpu_dash.model.commands import Command, Reply
from gpu_dash.model.events import (
    Event,
    Finding,
    LoadChanged,
    Notice,
    ServerChanged,
    ThrottleBegan,
)

Changed = Callable[[], None]
_SEEN_AT_ONCE = (LoadChanged, ServerChanged, Notice, Finding, ThrottleBegan)


class LinkState(StrEnum):
    """Whether events still come."""

    CONNECTING = "connecting"
    LIVE = "live"
    LOST = "lost"


@dataclass(frozen=True)
class Link:
    """The road on which the events come."""

    state: LinkState
    since: float = 0.0
    detail: str = ""
    """In words, with what to do, when it is lost."""


@dataclass(frozen=True)
class Access:
    """What this viewer may do."""

    yours: bool = True
    """It holds the controls."""
    viewers: int = 1
    read_only: bool = False
    """It was opened to look only, and never takes the controls."""


@dataclass(frozen=True)
class PlayState:
    """Where a replay stands."""

    position_s: float
    duration_s: float
    playing: bool
    speed: float


class Playback(Protocol):
    """What one can do with a replay and with nothing else."""

    @property
    def state(self) -> PlayState:
        """Where it stands."""
        ...

    def toggle(self) -> None:
        """Play or pause; at the end, play again from the start."""
        ...

    def seek(self, position_s: float) -> None:
        """Go to a moment of the session; outside of it, to its start or end."""
        ...

    def change_speed(self, steps: int) -> None:
        """Faster by so many steps of ×1 ×2 ×4 ×8, or slower."""
        ...


class Feed(Protocol):
    """One source of what the dashboard shows."""

    @property
    def store(self) -> Store:
        """What is known now. Read only; another object after a snapshot or a seek."""
        ...

    @property
    def link(self) -> Link:
        """Whether events still come."""
        ...

    @property
    def access(self) -> Access:
        """What this viewer may do."""
        ...

    @property
    def playback(self) -> Playback | None:
        """The controls of a replay; ``None`` for anything live."""
        ...

    def now(self) -> float:
        """The moment that ages and charts count to: the host's clock, or the play head."""
        ...

    def advance(self) -> None:
        """Called before each frame; a replay moves its play head."""
        ...

    async def run(self, changed: Changed) -> None:
        """Keep the store up to date until cancelled.

        Args:
            changed: called when something came that a person waits for, so that it is shown
                before the next regular frame.
        """
        ...

    async def send(self, command: Command) -> Reply:
        """Ask for something. A refusal, or nobody there to ask, is a reply that is not ok."""
        ...


def is_awaited(event: Event) -> bool:
    """Whether a person waits for this event: the answer to a key, or an alarm."""
    return isinstance(event, _SEEN_AT_ONCE)
