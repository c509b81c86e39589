"""``gpu-dash adopt``: take a server that runs already under supervision."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from gpu_dash.agent.client import AgentConnection
from gpu_dash.agent.home import MAIN, AgentHome
from gpu_dash.agent.spawn import ensure_agent
from gpu_dash.cli.options import api_key_from
from gpu_dash.model.commands import Watch
from gpu_dash.model.errors import CommandRefused, UsageError
from gpu_dash.server.adoption import find_server
from gpu_dash.server.log_command import container_command, journal_command
from gpu_dash.server.processes import started_at_s


@click.command("adopt")
@click.option("--pid", type=int, metavar="N", help="Process of the API server.")
@click.option("--port", type=int, metavar="N", help="Port that it listens on.")
@click.option("--log", type=click.Path(), help="Its log; its standard output if that is a file.")
@click.option("--journal", metavar="UNIT", help="Its log is the journal of this systemd unit.")
@click.option("--container", metavar="NAME", help="Its log is the output of this container.")
@click.option("--model", metavar="ID", help="Asked from the server if left out.")
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the key.")
@click.option("--label", default="", help="A word for this session in the list of sessions.")
def command(
    pid: int | None,
    port: int | None,
    log: str | None,
    journal: str | None,
    container: str | None,
    model: str | None,
    api_key_env: str | None,
    label: str,
) -> None:
    """Take a server that was started by hand under supervision: its end is noticed, its log is
    marked, and gpu-dash stop ends it."""
    if sum(source is not None for source in (log, journal, container)) > 1:
        raise UsageError("give one of --log FILE, --journal UNIT, --container NAME")
    found = find_server(pid=pid, port=port)
    log_command: tuple[str, ...] = ()
    if journal is not None:
        log_command = journal_command(journal, started_at_s(found.process))
    elif container is not None:
        log_command = container_command(container, started_at_s(found.process))
    watch = Watch(
        base_url=found.base_url,
        model=model,
        api_key=api_key_from(api_key_env),
        log=str(Path(log).absolute()) if log else (None if log_command else found.log),
        log_command=log_command,
        process=found.process,
        label=label,
    )
    folder = asyncio.run(_ask(watch))
    click.echo(
        f"gpu-dash looks after pid {found.process.pid} at {found.base_url}"
        f"{'' if watch.log or log_command else ' (without a log: give --log)'}; "
        f"watch: gpu-dash, stop: gpu-dash stop --server; recording in {folder}"
    )


async def _ask(watch: Watch) -> str:
    home = AgentHome.named(MAIN)
    await ensure_agent(home)
    connection = await AgentConnection.open(home)
    try:
        reply = await connection.ask(watch)
    finally:
        await connection.close()
    if not reply.ok:
        raise CommandRefused(reply.error, reply.exit_code)
    return str(reply.data["folder"])
