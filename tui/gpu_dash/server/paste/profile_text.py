"""An imported launch → the text of a profile, corrected where the right form is known."""

from __future__ import annotations

import re
from typing import Any

import tomli_w

from gpu_dash.model.text import one_line
from gpu_dash.server.flags.check import Why, full_name
from gpu_dash.server.flags.history import Release, show
from gpu_dash.server.flags.shapes import is_boolean
from gpu_dash.server.paste.launch import PastedValue
from gpu_dash.server.paste.text import ImportedLaunch

_NUMBER = re.compile(r"-?\d+")
_DECIMAL = re.compile(r"-?\d+\.\d+")
_COUNTS = re.compile(r"[\w-]+=\d+(?:,[\w-]+=\d+)*")
_FLAG_OF_VARIABLE = {"VLLM_ATTENTION_BACKEND": "attention-backend"}
"""Variables whose value goes to a flag as it is."""
_RENAMED = {
    "model-name": "served-model-name",
    "guided-decoding-backend": "structured-outputs-config.backend",
    "speculative-model": "speculative-config.model",
    "num-speculative-tokens": "speculative-config.num_speculative_tokens",
    "tp-size": "tensor-parallel-size",
    "num-gpus": "tensor-parallel-size",
    "context-length": "max-model-len",
    "max-seq-len": "max-model-len",
    "cuda-graph-sizes": "cudagraph-capture-sizes",
}
"""Flags whose value goes to another name as it is."""


def profile_text(imported: ImportedLaunch, release: Release) -> str:
    """The TOML of a profile that starts what was pasted, as a release of vLLM takes it.

    What was corrected, what is missing and what to know stands in comments at its head.
    """
    launch, container = imported.launch, imported.launch.container
    flags = _corrected_flags(imported, release)
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
    corrected = {one.name for one in imported.corrections}
    env = {
        name: value
        for name, value in launch.env.items()
        if value is not None and name not in corrected and name not in imported.secrets
    }
    server["flags"] = flags
    server["env"] = env
    document = {
        "description": f"Imported: {one_line(launch.model or 'a model to be named')}",
        "vllm_version": show(release),
        "server": server,
    }
    return _head(imported, release) + tomli_w.dumps(document)


def _corrected_flags(imported: ImportedLaunch, release: Release) -> dict[str, Any]:
    wrong = {one.name: one for one in imported.corrections}
    flags: dict[str, Any] = {}
    for name, value in imported.launch.flags.items():
        correction = wrong.get(name)
        if name in imported.secrets:
            continue
        if correction is None:
            flags[full_name(name, release)] = _typed(value)
        elif correction.why is Why.BAD_FORM:
            flags |= _in_good_form(name, value)
        elif name in _RENAMED:
            flags[_RENAMED[name]] = _typed(value)
    for variable, flag in _FLAG_OF_VARIABLE.items():
        given = imported.launch.env.get(variable)
        if variable in wrong and given:
            flags.setdefault(flag, given)
    return flags


def _in_good_form(name: str, value: PastedValue) -> dict[str, Any]:
    if isinstance(value, str) and is_boolean(name):
        return {name: value.lower() in ("true", "1")}
    if isinstance(value, str) and name == "limit-mm-per-prompt" and _COUNTS.fullmatch(value):
        counts = (part.split("=") for part in value.split(","))
        return {f"{name}.{kind}": int(count) for kind, count in counts}
    return {}


def _typed(value: PastedValue) -> bool | int | float | str | list[str]:
    """Numbers as numbers, so that the profile reads as one would write it."""
    if not isinstance(value, str):
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
