"""``gpu-dash status``: the agents of this host and what they look after."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from gpu_dash.agent.client import AgentConnection
from gpu_dash.agent.home import AgentHome, all_homes
from gpu_dash.agent.state_file import load_state
from gpu_dash.cli.options import print_json
from gpu_dash.cli.orphans import orphan_row
from gpu_dash.model.commands import AskStatus
from gpu_dash.model.errors import AgentError
from gpu_dash.model.load import load_words
from gpu_dash.model.text import strip_controls
from gpu_dash.server.orphans import find_orphans
from gpu_dash.server.processes import is_alive

STATUS_S = 5.0


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, one per agent.")
def command(as_json: bool) -> None:
    """What runs on this host: agents, servers, load."""
    rows = asyncio.run(_collect())
    orphans = find_orphans()
    if as_json:
        print_json(rows + [{"agent": None, "orphan": orphan_row(each)} for each in orphans])
        return
    if not rows:
        click.echo("nothing runs; start with gpu-dash PROFILE or gpu-dash demo")
    for row in rows:
        click.echo(_line(row))
    for orphan in orphans:
        click.echo(f"orphan: {orphan}; gpu-dash orphans --end ends it")


async def _collect() -> list[dict[str, Any]]:
    found = await asyncio.gather(*(_ask(home) for home in all_homes()))
    return [row for row in found if row is not None]


async def _ask(home: AgentHome) -> dict[str, Any] | None:
    """One agent's status; of one that was killed, the server that it left; ``None`` for nothing."""
    if not home.is_running():
        return _left_behind(home)
    try:
        connection = await AgentConnection.open(home)
    except AgentError as error:
        return {"agent": home.name, "error": str(error)}
    try:
        reply = await connection.ask(AskStatus(), timeout_s=STATUS_S)
    except AgentError as error:
        return {"agent": home.name, "error": str(error)}
    finally:
        await connection.close()
    status: dict[str, Any] = reply.data
    return status


def _left_behind(home: AgentHome) -> dict[str, Any] | None:
    state = load_state(home.state_path)
    if state is None or state.process is None or not is_alive(state.process.server):
        return None
    adopt = "gpu-dash" if home.name == "main" else "gpu-dash stop --all"
    return {
        "agent": home.name,
        "error": f"its agent is gone, its server (pid {state.process.server.pid}) runs on; "
        f"{adopt} takes it over",
        "session": state.session,
        "folder": state.folder,
    }


def _line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['agent']}: {row['error']}"
    server, load, gpus = row["server"], row["load"], row["gpus"]
    words = [f"{row['agent']} (pid {row['pid']})"]
    if server["state"] == "none":
        words.append("no server")
    else:
        name = server["profile"] or "external server"
        words.append(f"{name} {server['state']} for {server['since_s']:.0f} s")
        words.append(f"{server['model']} at {server['base_url']}")
        if server["detail"]:
            words.append(server["detail"])
        asked = load_words(load["concurrency"], load["request_rate"])
        words.append(f"load {load['state']}, {asked}")
    words.append(f"{gpus['count']} GPUs ({gpus['source']} {gpus['state']})")
    words.append(f"{row['viewers']} watching")
    if row["folder"]:
        words.append(row["folder"])
    return strip_controls("; ".join(words))
