"""The dashboard's screen on an agent, and the line in the shell that it leaves behind."""

from __future__ import annotations

import sys

import click

from gpu_dash.agent.client import AgentConnection
from gpu_dash.agent.home import MAIN, AgentHome
from gpu_dash.model.commands import Command
from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import LoadState, load_words
from gpu_dash.model.server import HandleKind, ServerState
from gpu_dash.model.text import strip_controls
from gpu_dash.ui.launch_desk import LaunchDesk
from gpu_dash.ui.run import Left, LeftBy, run_dashboard

EXIT_FAULT = 70
"""A fault of the dashboard itself (``EX_SOFTWARE`` of sysexits.h)."""


def check_terminal() -> None:
    """Refuse to open a screen where there is none.

    The screen is painted on standard error.

    Raises:
        UsageError: standard input, output or error is no terminal.
    """
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError(
            "the dashboard needs a terminal; without one use gpu-dash run, status or gpus"
        )


def show_agent(
    home: AgentHome,
    *,
    launch: Command | None = None,
    desk: LaunchDesk | None = None,
    read_only: bool = False,
) -> int:
    """Watch an agent until the dashboard is left; the exit code."""
    from gpu_dash.ui.live_feed import LiveFeed

    async def connect() -> AgentConnection:
        return await AgentConnection.open(home, role="viewer", read_only=read_only)

    is_private = home.name != MAIN
    feed = LiveFeed(connect, read_only=read_only)
    left = run_dashboard(feed, launch=launch, desk=desk, ends_with_screen=is_private)
    click.echo(what_ended(left) if is_private else what_goes_on(left))
    return exit_code(left)


def exit_code(left: Left) -> int:
    """What the command leaves with: 0 after ``q``, 128 + N after signal N."""
    if left.by is LeftBy.FAULT:
        click.echo(f"gpu-dash: a fault of the dashboard: {left.fault!r}", err=True)
        return EXIT_FAULT
    return 128 + left.signal if left.signal is not None else 0


def what_goes_on(left: Left) -> str:
    """What still runs after the dashboard was left, how to return and how to stop it."""
    server = left.server
    if left.agent_lost:
        return "gpu-dash: the agent is gone; gpu-dash starts one that finds what still runs"
    if server is None or server.state in (
        ServerState.NONE,
        ServerState.STOPPED,
        ServerState.FAILED,
    ):
        return "gpu-dash: nothing goes on" + (
            f"; the recording is in {left.session_folder}" if left.session_folder else ""
        )
    name = server.profile or server.base_url
    words = [f"{name} goes on ({server.state})"]
    if left.load is not LoadState.IDLE:
        asked = load_words(left.concurrency, left.request_rate)
        words.append(f"load {left.load} with {asked}")
    words.append(f"recording in {left.session_folder}")
    stop = "gpu-dash stop" + (" (the server is not ours: it goes on)" if _is_foreign(left) else "")
    return strip_controls(f"gpu-dash: {', '.join(words)}; return: gpu-dash, stop: {stop}")


def what_ended(left: Left) -> str:
    """After a screen whose agent ends with it."""
    return strip_controls(f"gpu-dash: ended; the recording is in {left.session_folder}")


def _is_foreign(left: Left) -> bool:
    return left.server is not None and left.server.kind is HandleKind.EXTERNAL
