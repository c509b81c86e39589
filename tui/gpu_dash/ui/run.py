"""Open the dashboard, and say how it was left."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpu_dash.model.commands import Command
from gpu_dash.model.load import LoadState
from gpu_dash.model.server import ServerStatus
from gpu_dash.ui.feed import Feed
from gpu_dash.ui.launch_desk import LaunchDesk


class LeftBy(StrEnum):
    """How the dashboard ended."""

    QUIT = "quit"
    SIGNAL = "signal"
    """The terminal went away, or somebody asked the process to end."""
    FAULT = "fault"
    """A fault of the dashboard itself; the terminal is as it was."""


@dataclass(frozen=True)
class Left:
    """What the shell line after the dashboard is made from.

    Attributes:
        by: how it ended.
        signal: the signal's number, when it was one.
        fault: the exception, when it was one.
        agent_lost: the agent was gone at the end.
        server: what the server was at the end.
        load: what the load did at the end, and how much was asked for.
        session_folder: where the recording is.
    """

    by: LeftBy
    signal: int | None = None
    fault: BaseException | None = None
    agent_lost: bool = False
    server: ServerStatus | None = None
    load: LoadState = LoadState.IDLE
    concurrency: int = 0
    request_rate: float | None = None
    session: str = ""
    session_folder: str = ""


def run_dashboard(
    feed: Feed,
    *,
    launch: Command | None = None,
    desk: LaunchDesk | None = None,
    frames_per_s: float = 2.0,
    ends_with_screen: bool = False,
) -> Left:
    """Show the dashboard until it is left; the terminal is as before when this returns.

    Args:
        feed: what it shows.
        launch: what ``l`` sends when no server runs.
        desk: the profiles that ``p`` lets one choose from.
        frames_per_s: how often it is painted.
        ends_with_screen: leaving ends what runs, so the words on the screen must not promise that
            it goes on.
    """
    from gpu_dash.ui.app import DashboardApp

    app = DashboardApp(
        feed,
        launch=launch,
        desk=desk,
        frames_per_s=frames_per_s,
        ends_with_screen=ends_with_screen,
    )
    app.run()
    return app.left()
