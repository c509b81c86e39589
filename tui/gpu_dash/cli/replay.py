"""``gpu-dash replay SESSION``: the dashboard on a recorded session."""

from __future__ import annotations

import click

from gpu_dash.cli.screen import check_terminal, exit_code
from gpu_dash.record.folder import find_session
from gpu_dash.record.replay import Replay
from gpu_dash.ui.replay_feed import ReplayFeed
from gpu_dash.ui.run import run_dashboard


@click.command("replay")
@click.argument("session")
def command(session: str) -> int:
    """Play SESSION: a name, the head of one, a folder, or `last`."""
    check_terminal()
    return exit_code(run_dashboard(ReplayFeed(Replay.load(find_session(session)))))
