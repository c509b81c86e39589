"""``gpu-dash attach``: the dashboard on the agent that runs."""

from __future__ import annotations

import click

from gpu_dash.agent.home import MAIN, AgentHome
from gpu_dash.cli.screen import check_terminal, show_agent
from gpu_dash.model.errors import AgentError


@click.command("attach")
@click.option("--read-only", is_flag=True, help="Look only; never take the controls.")
def command(read_only: bool) -> int:
    """Open the dashboard on the main agent, if it runs."""
    check_terminal()
    home = AgentHome.named(MAIN)
    if not home.is_running():
        raise AgentError("no agent runs; start one with gpu-dash PROFILE")
    return show_agent(home, read_only=read_only)
