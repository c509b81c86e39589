"""A service of the user's own compose file, started, followed and stopped through ``docker
compose`` (or ``podman compose``, ``docker-compose``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpu_dash.model.errors import ServerError
from gpu_dash.model.profile import ServerProfile
from gpu_dash.model.server import HandleKind
from gpu_dash.server.container_program import call
from gpu_dash.server.handles import ContainerHandle, ContainerRecord, Stopped


class ComposeRecord(msgspec.Struct, frozen=True):
    """What the next agent needs to adopt a service."""

    command: tuple[str, ...]
    """``docker compose --file FILE``, word by word."""
    service: str
    container: str = ""
    """The id of its container."""


@dataclass
class ComposeHandle:
    """One service of a compose file. Whatever else the file holds is started as far as the service
    depends on it, and never stopped: it is not ours."""

    record: ComposeRecord
    environment: Mapping[str, str]
    kind = HandleKind.CONTAINER
    pid = None

    def __post_init__(self) -> None:
        program = self.record.command[0].removesuffix("-compose")
        container = ContainerRecord(program=program, name=self.record.container)
        self._container = ContainerHandle(container, self.environment)
        """What docker or podman knows of it without the file."""

    @classmethod
    async def launch(cls, record: ComposeRecord, environment: Mapping[str, str]) -> ComposeHandle:
        """``… up --detach SERVICE``; the container's id is asked then.

        Raises:
            ServerError: compose refused, in its own words, or there is no container afterwards.
        """
        await call((*record.command, "up", "--detach", record.service), environment)
        asked = (*record.command, "ps", "--quiet", record.service)
        containers = (await call(asked, environment)).split()
        if not containers:
            raise ServerError(
                f"{' '.join(record.command)}: no container of `{record.service}` runs after up; "
                f"see {' '.join(record.command)} logs {record.service}"
            )
        return cls(msgspec.structs.replace(record, container=containers[0]), environment)

    async def follow(self, log_path: Path) -> None:
        """Append the service's output to a file for as long as it runs."""
        await self._container.follow(log_path)

    async def wait(self) -> int | None:
        return await self._container.wait()

    async def stop(self, *, starting: bool, grace_s: float) -> Stopped:
        options = ("stop", "--timeout", str(round(grace_s)))
        await call((*self.record.command, *options, self.record.service), self.environment)
        return Stopped(exit_code=await self.wait())

    async def clear_leftovers(self) -> tuple[int, ...]:
        """The stopped container stays: it belongs to the user's file."""
        return ()


def compose_record(server: ServerProfile, folder: str) -> ComposeRecord:
    """The service that a profile names.

    Args:
        server: with a ``compose_file``.
        folder: working directory of the person who launches.
    """
    file = Path(folder, server.compose_file or "").expanduser()
    verb = () if server.command[0].endswith("-compose") else ("compose",)
    command = (*server.command, *verb, "--file", str(file))
    return ComposeRecord(command, server.compose_service or "")
