"""``gpu-dash demo``: the whole job on simulated cards, in an agent that ends with the screen."""

from __future__ import annotations

import asyncio
import os
import subprocess

import click

from gpu_dash.agent.client import AgentConnection
from gpu_dash.agent.home import AgentHome
from gpu_dash.agent.spawn import start_private_agent, wait_until_up
from gpu_dash.cli.options import client_environment
from gpu_dash.cli.screen import check_terminal, show_agent
from gpu_dash.cli.stop import stop_left_behind
from gpu_dash.model.commands import Launch
from gpu_dash.model.errors import CommandRefused
from gpu_dash.server.profile_file import load_packaged_profile

END_S = 30.0


@click.command("demo")
def command() -> int:
    """Simulated GPUs, a built-in server and a ramp that runs already; leaving it ends it."""
    check_terminal()
    home = AgentHome.named(f"demo-{os.getpid()}")
    agent = start_private_agent(home, "sim")
    assert agent.stdin is not None
    launch = Launch(
        profile=load_packaged_profile("simulated"),
        environment=client_environment(),
        folder=os.getcwd(),
        ramp_when_ready=True,
    )
    try:
        asyncio.run(_begin(home, agent, launch))
        return show_agent(home, launch=launch)
    finally:
        agent.stdin.close()
        agent.wait(END_S)
        asyncio.run(stop_left_behind(home))


async def _begin(home: AgentHome, agent: subprocess.Popen[bytes], launch: Launch) -> None:
    await wait_until_up(home, agent)
    connection = await AgentConnection.open(home)
    try:
        reply = await connection.ask(launch)
    finally:
        await connection.close()
    if not reply.ok:
        raise CommandRefused(reply.error, reply.exit_code)
