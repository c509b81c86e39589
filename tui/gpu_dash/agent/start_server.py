"""A launch → the running server's handle: a process, a container, a service of a compose file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpu_dash.agent.session import KEEPER_STATUS, SERVER_LOG
from gpu_dash.agent.state_file import SessionState
from gpu_dash.model.commands import Launch
from gpu_dash.model.server import HandleKind
from gpu_dash.server.command_line import LaunchCommand, flag_arguments, launch_flags
from gpu_dash.server.compose import ComposeHandle, compose_record
from gpu_dash.server.handles import (
    ContainerHandle,
    ContainerRecord,
    ProcessHandle,
    ServerHandle,
)


async def start_server(
    command: Launch, line: LaunchCommand, begun: SessionState
) -> tuple[ServerHandle, SessionState]:
    """Start what a profile names.

    Returns:
        its handle, and the session's facts with what the next agent needs to adopt it.

    Raises:
        ServerError: the program, docker, podman or compose refused, in its own words.
    """
    server = command.profile.server
    if server.compose_file is not None:
        record = compose_record(server, command.folder)
        handle = await ComposeHandle.launch(record, line.environment)
        return handle, msgspec.structs.replace(begun, compose=handle.record)
    if server.kind is HandleKind.CONTAINER:
        return await _start_container(command, line, begun)
    return await _start_process(command, line, begun)


async def _start_process(
    command: Launch, line: LaunchCommand, begun: SessionState
) -> tuple[ServerHandle, SessionState]:
    folder = Path(begun.folder)
    handle = await ProcessHandle.launch(
        line.argv,
        line.environment,
        folder=command.folder,
        log_path=folder / SERVER_LOG,
        status_path=folder / KEEPER_STATUS,
    )
    status = msgspec.structs.replace(begun.status, pid=handle.pid)
    return handle, msgspec.structs.replace(begun, process=handle.record, status=status)


async def _start_container(
    command: Launch, line: LaunchCommand, begun: SessionState
) -> tuple[ServerHandle, SessionState]:
    server = command.profile.server
    record = ContainerRecord(program=server.command[0], name=f"gpu-dash-{begun.session}")
    names = [*server.env, *(["VLLM_API_KEY"] if line.api_key else [])]
    arguments = [
        *server.container_args,
        *(word for name in names for word in ("--env", name)),
        server.image or "",
        server.model,
        *("--host", "0.0.0.0", "--port", str(line.port)),
        *flag_arguments(launch_flags(server)),
    ]
    handle = await ContainerHandle.launch(record, arguments, line.environment)
    return handle, msgspec.structs.replace(begun, container=record)
