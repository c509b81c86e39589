"""An imported launch → the text of a profile, corrected where the right form is known."""

from __future__ import annotations

import re
from typing import Any

import tomli_w

from gpu_dash.model.profile import FlagValue
from gpu_dash.model.text import one_line
from gpu_dash.server.flags.correct import correct_flags
from gpu_dash.server.flags.history import Release, show
from gpu_dash.server.paste.launch import PastedValue
from gpu_dash.server.paste.text import ImportedLaunch

_NUMBER = re.compile(r"-?\d+")
_DECIMAL = re.compile(r"-?\d+\.\d+")


def profile_text(imported: ImportedLaunch, release: Release) -> str:
    """The TOML of a profile that starts what was pasted, as a release of vLLM takes it.

    What was corrected, what is missing and what to know stands in comments at its head.
    """
    launch, container = imported.launch, imported.launch.container
    typed = {name: typed_value(value) for name, value in launch.flags.items()}
    given = {name: value for name, value in launch.env.items() if value is not None}
    right = correct_flags(
        {name: value for name, value in typed.items() if name not in imported.secrets},
        {name: value for name, value in given.items() if name not in imported.secrets},
        imported.corrections,
        release,
    )
    flags = right.flags
    served = flags.pop("served-model-name", None)
    server: dict[str, Any] = {"model": launch.model or "MODEL"}
    if container is not None and container.image is not None:
        server |= {"kind": "container", "command": [container.program], "image": container.image}
        server["container_args"] = _container_arguments(imported)
    host = flags.pop("host", None)
    if isinstance(host, str):
        server["host"] = host
    published = _published(imported)
    if published is not None:
        server["port"] = int(published.rpartition(":")[2])
    elif isinstance(launch.port, int):
        server["port"] = launch.port
    if isinstance(served, str):
        server["served_model_name"] = served
    elif served is not None:
        flags["served-model-name"] = served
    if "api-key" in imported.secrets or "VLLM_API_KEY" in imported.secrets:
        server["api_key_env"] = "VLLM_API_KEY"
    server["flags"] = flags
    server["env"] = right.env
    document = {
        "description": f"Imported: {one_line(launch.model or 'a model to be named')}",
        "vllm_version": show(release),
        "server": server,
    }
    return _head(imported, release) + tomli_w.dumps(document)


def typed_value(value: PastedValue) -> FlagValue:
    """Numbers as numbers, so that the profile reads as one would write it."""
    if isinstance(value, list):
        return [*value]
    if isinstance(value, bool):
        return value
    if _NUMBER.fullmatch(value):
        return int(value)
    return float(value) if _DECIMAL.fullmatch(value) else value


def _container_arguments(imported: ImportedLaunch) -> list[str]:
    container = imported.launch.container
    if container is None:
        return []
    arguments: list[str] = []
    if container.gpus is not None:
        is_device = "gpu=" in container.gpus
        if is_device:
            arguments += ["--device", container.gpus]
        else:
            arguments += ["--gpus", container.gpus.removeprefix("count=")]
    for mount in container.mounts:
        arguments += ["-v", mount]
    published = _published(imported)
    if published is not None:
        arguments += ["-p", f"{published}:{published.rpartition(':')[2]}"]
    else:
        arguments += ["--network", "host"]
    return [*arguments, "--ipc=host"]


def _published(imported: ImportedLaunch) -> str | None:
    """The host's side of the port mapping: gpu-dash has the server listen on the same port
    inside, so that one number is enough."""
    container = imported.launch.container
    for mapping in container.ports if container is not None else ():
        outside = mapping.rpartition(":")[0]
        if outside.rpartition(":")[2].isdecimal():
            return outside
    return None


def _head(imported: ImportedLaunch, release: Release) -> str:
    lines = [f"Imported from a pasted command and corrected for vLLM {show(release)}."]
    lines += [one.detail for one in imported.corrections]
    if imported.unresolved:
        lines.append("Fill in, the text does not say: " + ", ".join(imported.unresolved))
    if imported.secrets:
        lines.append("Export before the launch, kept nowhere: " + ", ".join(imported.secrets))
    lines += imported.warnings
    return "".join(f"# {one_line(line)}\n" for line in lines) + "\n"
