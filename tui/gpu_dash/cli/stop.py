"""``gpu-dash stop``: end what runs."""

from __future__ import annotations

import asyncio
import time

import click

from gpu_dash.agent.client import AgentConnection
from gpu_dash.agent.home import MAIN, AgentHome, all_homes
from gpu_dash.agent.spawn import ensure_agent
from gpu_dash.agent.state_file import load_state
from gpu_dash.model.commands import StopAgent, StopServer
from gpu_dash.model.errors import AgentError, CommandRefused
from gpu_dash.model.server import HandleKind

STOP_S = 300.0
"""A stop may wait for the server's own time of grace."""
POLL_S = 0.05


@click.command("stop")
@click.option("--server", "what", flag_value="server", help="Only the server; the agent stays.")
@click.option("--agent", "what", flag_value="agent", help="Only the agent; the server goes on.")
@click.option("--all", "everything", is_flag=True, help="Private agents (run, demo) too.")
def command(what: str | None, everything: bool) -> None:
    """Stop load, server and agent, in that order."""
    homes = [home for home in all_homes() if everything or home.name == MAIN]
    stopped = asyncio.run(_stop_all(homes, what or "everything"))
    others = [home.name for home in all_homes() if home.name != MAIN and _has_something(home)]
    if others and not everything:
        click.echo(f"still there: {', '.join(others)}; gpu-dash stop --all ends them too")
    elif not stopped:
        click.echo("nothing runs")


def _has_something(home: AgentHome) -> bool:
    """Whether an agent lives there, or one that was killed left a server."""
    return home.is_running() or load_state(home.state_path) is not None


async def stop_left_behind(home: AgentHome) -> None:
    """Stop what a killed agent left: the next one adopts its server and can then stop it.

    Raises:
        GpuDashError: it cannot be adopted or stopped.
    """
    if not home.is_running() and load_state(home.state_path) is not None:
        await ensure_agent(home)
        await _stop(home, "everything")


async def _stop_all(homes: list[AgentHome], what: str) -> int:
    stopped = 0
    for home in homes:
        if not home.is_running():
            if load_state(home.state_path) is None or what == "agent":
                continue
            # The agent was killed: the next one adopts its server, and can then stop it.
            await ensure_agent(home)
        await _stop(home, what)
        stopped += 1
    return stopped


async def _stop(home: AgentHome, what: str) -> None:
    connection = await AgentConnection.open(home)
    try:
        if what == "server":
            reply = await connection.ask(StopServer(), timeout_s=STOP_S)
        else:
            reply = await connection.ask(StopAgent(keep_server=what == "agent"), timeout_s=STOP_S)
    finally:
        await connection.close()
    if not reply.ok:
        raise CommandRefused(f"{home.name}: {reply.error}", reply.exit_code)
    if what == "server":
        if reply.data["kind"] == HandleKind.EXTERNAL:
            click.echo(f"{home.name}: the server is not ours and goes on; it is no longer watched")
        else:
            click.echo(f"{home.name}: the server is stopped, the agent goes on")
        return
    deadline = time.monotonic() + STOP_S
    while home.is_running():
        if time.monotonic() > deadline:
            raise AgentError(f"{home.name}: the agent still runs; see gpu-dash status")
        await asyncio.sleep(POLL_S)
    goes_on = "; the server goes on, gpu-dash takes it over again" if what == "agent" else ""
    click.echo(f"{home.name}: stopped{goes_on}")
