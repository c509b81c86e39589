"""A feed that a test or a script of screenshots moves by hand."""

from __future__ import annotations

import asyncio

from gpu_dash.agent.store import Store
from gpu_dash.model.commands import Command, Reply
from gpu_dash.model.events import Event
from gpu_dash.ui.feed import Access, Changed, Link, LinkState, is_awaited


class ScriptedFeed:
    """Shows what it is given, at the moment it is told, and remembers what it was asked.

    Attributes:
        moment: what :meth:`now` says.
        sent: the commands that the keys sent.
        refusal: error of the next replies; empty for replies that are ok.
    """

    playback = None

    def __init__(self, *events: Event, moment: float = 0.0, access: Access | None = None) -> None:
        self.store = Store()
        self.moment = moment
        self.link = Link(LinkState.LIVE)
        self.access = access or Access()
        self.sent: list[Command] = []
        self.refusal = ""
        self._changed: Changed | None = None
        self.publish(*events)

    def now(self) -> float:
        return self.moment

    def advance(self) -> None:
        """Nothing: :attr:`moment` is set from outside."""

    def publish(self, *events: Event) -> None:
        """Put events on the road; the moment follows the newest."""
        for event in events:
            self.store.fold(event)
            self.moment = max(self.moment, event.at)
        if self._changed is not None and any(is_awaited(event) for event in events):
            self._changed()

    async def run(self, changed: Changed) -> None:
        self._changed = changed
        await asyncio.Event().wait()

    async def send(self, command: Command) -> Reply:
        self.sent.append(command)
        return Reply(id=len(self.sent), ok=not self.refusal, error=self.refusal)
