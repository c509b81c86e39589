"""Views for the tests of the rows."""

from __future__ import annotations

from gpu_dash.agent.store import Store
from gpu_dash.model.events import Event
from gpu_dash.ui.feed import Access, Link, LinkState, PlayState
from gpu_dash.ui.view import Message, View


def view_of(
    *events: Event,
    now: float | None = None,
    link: LinkState = LinkState.LIVE,
    access: Access | None = None,
    play: PlayState | None = None,
    can_launch: bool = False,
    message: Message | None = None,
) -> View:
    """The view after these events, at the newest of them if no moment is given."""
    store = Store()
    for event in events:
        store.fold(event)
    return View(
        store=store,
        now=store.now if now is None else now,
        link=Link(link, since=store.now, detail="why and what to do" if link != "live" else ""),
        access=access or Access(),
        play=play,
        can_launch=can_launch,
        message=message,
    )
