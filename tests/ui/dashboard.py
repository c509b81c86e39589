"""A dashboard in a test: what is on its screen, as rows of text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from gpu_dash.model.commands import Command
from gpu_dash.ui.app import DashboardApp
from gpu_dash.ui.feed import Feed

TURNS = 200


class Screen:
    """The app under a pilot.

    Frames are painted when the test says so, not by a timer: a test that shows something stale
    shows exactly that.
    """

    def __init__(self, app: DashboardApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def rows(self) -> list[str]:
        """The rows of the screen after a frame."""
        self.app.paint()
        await self.pilot.pause(0)
        strips = self.app.screen._compositor.render_strips()
        return [strip.text for strip in strips]

    async def text(self) -> str:
        """The screen as one text."""
        return "\n".join(await self.rows())

    async def row(self, words: str) -> str:
        """The first row that has these words."""
        return next((row for row in await self.rows() if words in row), "")

    async def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        await self.pilot.press(*keys)

    async def until(self, condition: Callable[[str], bool]) -> str:
        """The screen's text as soon as the condition holds for it."""
        for _ in range(TURNS):
            text = await self.text()
            if condition(text):
                return text
        raise AssertionError(f"the screen never became that:\n{text}")

    async def resize(self, width: int, height: int) -> None:
        """Give the terminal another size, and let every widget hear of its own."""
        await self.pilot.resize_terminal(width, height)
        self.app.paint()
        await self.pilot.pause()
        await self.pilot.pause()


@asynccontextmanager
async def dashboard(
    feed: Feed,
    size: tuple[int, int] = (80, 24),
    launch: Command | None = None,
    *,
    ends_with_screen: bool = False,
) -> AsyncIterator[Screen]:
    """The dashboard on this feed, mounted and painted once."""
    app = DashboardApp(feed, launch=launch, frames_per_s=1e-6, ends_with_screen=ends_with_screen)
    async with app.run_test(size=size) as pilot:
        yield Screen(app, pilot)
