"""One pasted text of any kind → one launch, what is wrong with it, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu_dash.model.errors import UsageError
from gpu_dash.server.flags.check import Correction, check_launch
from gpu_dash.server.flags.history import NEWEST, Release
from gpu_dash.server.paste.launch import Notes, PastedContainer, PastedLaunch
from gpu_dash.server.paste.manifest import is_manifest, servers_of_manifest
from gpu_dash.server.paste.script import ScriptReader
from gpu_dash.server.paste.secrets import HIDDEN, is_secret_name, without_secrets, without_tokens
from gpu_dash.server.paste.typography import plain
from gpu_dash.server.paste.unit_file import is_unit_file, servers_of_unit

_VISIBLE = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HABANA_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
)
_FORK = re.compile(r"gaudi|habana|hpu|ascend|neuron|ipex|spyre|metax|kunlun", re.IGNORECASE)
_DEVICE = re.compile(r"(?:device=|nvidia\.com/gpu=|amd\.com/gpu=)([^,]+(?:,[^,=]+(?=,|$))*)")
MAX_TEXT_CHARACTERS = 200_000


@dataclass(frozen=True)
class ImportedLaunch:
    """What became of a pasted text; no secret is in it."""

    launch: PastedLaunch
    visible_devices: str | None
    corrections: tuple[Correction, ...]
    secrets: tuple[str, ...]
    unresolved: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The object of ``profiles new --dry-run --json``."""
        launch, container = self.launch, self.launch.container
        return {
            "program": launch.program,
            "model": launch.model,
            "flags": dict(launch.flags),
            "env": dict(launch.env),
            "visible_devices": self.visible_devices,
            "port": launch.port,
            "container": None
            if container is None
            else {
                "image": container.image,
                "gpus": container.gpus,
                "mounts": list(container.mounts),
                "ports": list(container.ports),
            },
            "corrections": [
                {"name": one.name, "instead": one.instead, "why": str(one.why)}
                for one in self.corrections
            ],
            "secrets": list(self.secrets),
            "unresolved": list(self.unresolved),
            "warnings": list(self.warnings),
        }


def import_text(text: str, release: Release = NEWEST) -> ImportedLaunch:
    """Read a pasted text.

    Args:
        text: shell, docker or podman, compose, Kubernetes, systemd or ray.
        release: of vLLM, for the corrections.

    Raises:
        UsageError: nothing in it starts a vLLM server.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise UsageError(
            f"the text has {len(text):,} characters; paste the command alone "
            f"(up to {MAX_TEXT_CHARACTERS:,})"
        )
    notes = Notes()
    servers = _servers(plain(text), notes)
    if not servers:
        raise UsageError(
            "nothing in the text starts a vLLM server; it should hold `vllm serve MODEL …`, "
            "`python -m vllm.entrypoints.openai.api_server …`, or a container of vLLM"
        )
    # `exec … "$@"` alone says nothing: what the same text starts with arguments is meant
    servers = [one for one in servers if one.model or one.flags] or servers
    for other in servers[1:]:
        where = f" on port {other.port}" if other.port else ""
        notes.warn(f"the text starts another server ({other.model}{where}); the first was taken")
    launch = servers[0]
    for value in (launch.model, *launch.flags.values(), launch.port):
        _note_stand_in(value, notes)
    checked = check_launch(
        launch.flags,
        tuple(launch.env),
        release,
        program=launch.program,
        of_fork=_is_for_a_fork(launch),
    )
    for warning in checked.warnings:
        notes.warn(warning)
    typed = _secret_texts(launch)
    launch = without_secrets(launch, notes)
    return ImportedLaunch(
        launch=launch,
        visible_devices=_visible_devices(launch.env, launch.container),
        corrections=checked.corrections,
        secrets=tuple(notes.secrets),
        unresolved=tuple(notes.unresolved),
        warnings=tuple(_hide(warning, typed) for warning in notes.warnings),
    )


def _servers(text: str, notes: Notes) -> list[PastedLaunch]:
    if is_unit_file(text):
        return servers_of_unit(text, notes)
    if is_manifest(text):
        found = servers_of_manifest(text, notes)
        if found:
            return found
    return ScriptReader(notes).servers(text)


def _visible_devices(
    env: Mapping[str, str | None], container: PastedContainer | None
) -> str | None:
    for name in _VISIBLE:
        value = env.get(name)
        if value and value not in ("all", "none", "void"):
            return value
    if container is not None and container.device_ids:
        return ",".join(container.device_ids)
    asked = (container.gpus if container else None) or ""
    devices = _DEVICE.findall(asked)
    return None if not devices or "all" in devices else ",".join(devices)


def _note_stand_in(value: object, notes: Notes) -> None:
    """``your_port``, ``YOUR_MODEL``: nothing that could be started."""
    if isinstance(value, str) and re.fullmatch(r"your[-_]\w+", value, re.IGNORECASE):
        notes.leave(value)


def _is_for_a_fork(launch: PastedLaunch) -> bool:
    image = launch.container.image if launch.container else None
    names = [image or "", *launch.env, str(launch.flags.get("device", ""))]
    return any(_FORK.search(name) for name in names)


def _secret_texts(launch: PastedLaunch) -> list[str]:
    values = {**launch.env, **{name: str(value) for name, value in launch.flags.items()}}
    return [
        value for name, value in values.items() if value and len(value) > 3 and is_secret_name(name)
    ]


def _hide(text: str, secrets: list[str]) -> str:
    for secret in secrets:
        if not secret.startswith("$"):
            text = text.replace(secret, HIDDEN)
    return without_tokens(text)
