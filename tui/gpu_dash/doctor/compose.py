"""What a service of a compose file gives its server: for the check of its flags, and its plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from gpu_dash.model.errors import UsageError
from gpu_dash.model.profile import Profile
from gpu_dash.server.flags.check import CheckedLaunch
from gpu_dash.server.flags.history import Release
from gpu_dash.server.paste.profile_text import typed_value
from gpu_dash.server.paste.text import import_text


def as_written(profile: Profile, folder: str, release: Release) -> tuple[Profile, CheckedLaunch]:
    """The profile with the flags and variables that stand in its compose file, and what a release
    says to them.

    Args:
        profile: with a ``compose_file``.
        folder: working directory of the person who launches.
        release: of vLLM.

    Raises:
        UsageError: the file cannot be read, or the service starts no vLLM.
    """
    server = profile.server
    path = Path(folder, server.compose_file or "").expanduser()
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{path}: no valid YAML: {' '.join(str(error).split())}") from error
    services = content.get("services") if isinstance(content, dict) else None
    service = services.get(server.compose_service) if isinstance(services, dict) else None
    if service is None:
        raise UsageError(f"{path}: it has no service {server.compose_service!r}")
    alone = yaml.safe_dump({"services": {server.compose_service: service}})
    imported = import_text(alone, release)
    flags = {name: typed_value(value) for name, value in imported.launch.flags.items()}
    env = {name: value for name, value in imported.launch.env.items() if value is not None}
    given = msgspec.structs.replace(server, flags=flags, env=env)
    written: Profile = msgspec.structs.replace(profile, server=given)
    return written, CheckedLaunch(imported.corrections, imported.warnings)
