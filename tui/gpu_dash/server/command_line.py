"""Profile → what is started: argument list and environment. Never a shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpu_dash.model.duration import parse_duration
from gpu_dash.model.errors import UsageError
from gpu_dash.model.profile import FlagValue, Profile, ServerProfile
from gpu_dash.model.workers import Parallel

_PARALLEL_FLAGS = (
    ("tensor-parallel-size", "tp"),
    ("pipeline-parallel-size", "pp"),
    ("data-parallel-size", "dp"),
)


@dataclass(frozen=True)
class LaunchCommand:
    """What is started, with nothing secret in the part that others can see."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    base_url: str
    port: int
    model: str
    """The name that requests use."""
    api_key: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return shlex.join(self.argv)


def build_command(profile: Profile, environment: Mapping[str, str], port: int) -> LaunchCommand:
    """The command line and environment of a profile.

    Args:
        profile: a checked profile.
        environment: of the person who launches; the profile's own variables go on top.
        port: the port to listen on (the profile's, or the free one that was found for its 0).

    Raises:
        UsageError: the profile names a key's variable and it is not set.
    """
    server = profile.server
    merged = {**environment, **server.env, "PYTHONUNBUFFERED": "1"}
    api_key = None
    if server.api_key_env is not None:
        api_key = environment.get(server.api_key_env)
        if not api_key:
            raise UsageError(
                f"profile {profile.name!r}: `server.api_key_env`: the variable "
                f"{server.api_key_env} is not set; export it or remove the field"
            )
        merged["VLLM_API_KEY"] = api_key
    command = [sys.executable if word == "{python}" else word for word in server.command]
    return LaunchCommand(
        argv=(
            *command,
            server.model,
            "--host",
            server.host,
            "--port",
            str(port),
            *flag_arguments(launch_flags(server)),
        ),
        environment=merged,
        base_url=f"http://{_reachable(server.host)}:{port}",
        port=port,
        model=server.served_model_name or server.model,
        api_key=api_key,
    )


def launch_flags(server: ServerProfile) -> dict[str, FlagValue]:
    """The flags of a profile, with those that stand in fields of their own."""
    flags = dict(server.flags)
    if server.served_model_name is not None:
        flags["served-model-name"] = server.served_model_name
    shutdown_seconds = parse_duration(server.shutdown_timeout)
    if shutdown_seconds > 0:
        flags["shutdown-timeout"] = round(shutdown_seconds)
    return flags


def command_line(server: ServerProfile) -> str:
    """What a profile starts, as one would type it: without host and port."""
    if server.compose_file is not None:
        words = [*server.command, "compose", "--file", server.compose_file, "up", "--detach"]
        return shlex.join([*words, server.compose_service or ""])
    image = [server.image] if server.image else []
    return shlex.join(
        [*server.command, *image, server.model, *flag_arguments(launch_flags(server))]
    )


def flag_arguments(flags: Mapping[str, FlagValue]) -> list[str]:
    """Flags as arguments: ``{"a": True, "b": False, "c": [1, 2]}`` → ``--a --no-b --c 1 2``."""
    arguments = []
    for name, value in flags.items():
        if value is True:
            arguments.append(f"--{name}")
        elif value is False:
            arguments.append(f"--no-{name}")
        elif isinstance(value, list):
            arguments += [f"--{name}", *map(str, value)]
        else:
            arguments += [f"--{name}", str(value)]
    return arguments


def parallel_of(profile: Profile) -> Parallel:
    """How a profile's flags spread the server over its cards."""
    tensor, pipeline, data = (_size(profile.server.flags, names) for names in _PARALLEL_FLAGS)
    return Parallel(tensor=tensor, pipeline=pipeline, data=data)


def _size(flags: Mapping[str, FlagValue], names: Sequence[str]) -> int:
    value = next((flags[name] for name in names if name in flags), 1)
    try:
        return max(1, int(str(value)))
    except ValueError:
        return 1


def _reachable(host: str) -> str:
    """The address at which this host reaches a server that listens on ``host``."""
    if host in ("0.0.0.0", ""):
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host
