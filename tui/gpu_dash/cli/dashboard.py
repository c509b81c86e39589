"""``gpu-dash [PROFILE | --base-url URL]``: the dashboard on the user's main agent."""

from __future__ import annotations

import asyncio

import click

from gpu_dash.agent.client import AgentConnection
from gpu_dash.agent.home import MAIN, AgentHome
from gpu_dash.agent.spawn import ensure_agent
from gpu_dash.cli.host_desk import HostDesk
from gpu_dash.cli.options import api_key_from, existing_log, header_option, headers_of
from gpu_dash.cli.screen import check_terminal, show_agent
from gpu_dash.cli.targets import begin_profile
from gpu_dash.model.commands import AskStatus, Launch, Watch
from gpu_dash.model.errors import CommandRefused, UsageError
from gpu_dash.server.profile_file import load_profile

_RUNNING = ("starting", "ready", "unreachable", "stopping")


@click.command("dashboard", hidden=True)
@click.argument("profile", required=False)
@click.option("--base-url", metavar="URL", help="Watch and load a server that runs already.")
@click.option("--model", metavar="ID", help="With --base-url; asked from the server if left out.")
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the key.")
@header_option
@click.option("--log", type=click.Path(), help="With --base-url: the server's log, to be marked.")
@click.option("--label", default="", help="A word for this session in the list of sessions.")
@click.option("--corrected", is_flag=True, help="Launch with the flags as this vLLM takes them.")
@click.option("--force", is_flag=True, help="Launch although the pre-flight says no.")
def command(
    profile: str | None,
    base_url: str | None,
    model: str | None,
    api_key_env: str | None,
    headers: tuple[str, ...],
    log: str | None,
    label: str,
    corrected: bool,
    force: bool,
) -> int:
    """Launch PROFILE and watch it; without one, come back to what runs."""
    if profile is not None and base_url is not None:
        raise UsageError("give a PROFILE or --base-url URL, one of the two")
    begin: Launch | Watch | None = None
    if profile is not None:
        read = load_profile(profile)
        begin = begin_profile(
            read,
            label=label,
            force=force,
            corrected=corrected,
            headers=headers_of(read.load.headers, headers, has_key=read.has_key),
        )
    elif base_url is not None:
        begin = Watch(
            base_url=base_url,
            model=model,
            api_key=api_key_from(api_key_env),
            headers=headers_of({}, headers, has_key=api_key_env is not None),
            log=existing_log(log),
            label=label,
        )
    check_terminal()
    home = AgentHome.named(MAIN)
    asyncio.run(_prepare(home, begin))
    return show_agent(home, launch=begin, desk=HostDesk())


async def _prepare(home: AgentHome, begin: Launch | Watch | None) -> None:
    """Have the agent run, and what was asked for begun, before the screen opens: what is refused
    is one line in the shell and not a message behind a screen.

    Raises:
        CommandRefused: the pre-flight says no, or the agent looks after something else.
    """
    await ensure_agent(home)
    if begin is None:
        return
    connection = await AgentConnection.open(home)
    try:
        status = (await connection.ask(AskStatus())).data["server"]
        if status["state"] in _RUNNING and _is_same(status, begin):
            return
        reply = await connection.ask(begin)
        if not reply.ok:
            # Another terminal may have begun the very same in this moment: then this is a return.
            status = (await connection.ask(AskStatus())).data["server"]
    finally:
        await connection.close()
    if not reply.ok and not (status["state"] in _RUNNING and _is_same(status, begin)):
        raise CommandRefused(reply.error, reply.exit_code)


def _is_same(status: dict[str, object], begin: Launch | Watch) -> bool:
    """Whether what runs is what was asked for: then this is a return, not a launch."""
    if isinstance(begin, Launch):
        return status["profile"] == begin.profile.name
    return status["kind"] == "external" and status["base_url"] == begin.base_url
