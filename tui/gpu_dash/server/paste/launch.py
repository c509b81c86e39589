"""What a reader found in a pasted text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PastedValue = str | bool | list[str]
"""Of a flag: ``True`` for a bare one, several values as a list."""


@dataclass(frozen=True)
class PastedContainer:
    """The container that the server runs in, as it was asked for."""

    image: str | None = None
    gpus: str | None = None
    """The text of the request: ``all``, ``device=0,1``, ``nvidia.com/gpu=all``, ``2``."""
    device_ids: tuple[str, ...] = ()
    """The cards, where the request names them one by one in a list."""
    mounts: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    program: str = "docker"
    """What the text starts it with: ``docker``, ``podman`` or ``nerdctl``."""


@dataclass(frozen=True)
class PastedLaunch:
    """One server. Values of secrets are still in it: :mod:`gpu_dash.server.paste.secrets` takes
    them out before anything is shown or written."""

    program: str
    """``vllm serve``, the module after ``python -m``, ``api_server.py`` or ``image entrypoint``."""
    model: str | None
    flags: Mapping[str, PastedValue]
    port: int | str | None
    """vLLM's own; text where it is no number."""
    env: Mapping[str, str | None] = field(default_factory=dict)
    """``None``: passed on by name, or from a secret's reference."""
    container: PastedContainer | None = None


@dataclass
class Notes:
    """What the readers of one text come across beside the launch itself."""

    unresolved: list[str] = field(default_factory=list)
    """Variables and placeholders that the text does not set."""
    warnings: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    """Names of secrets that the text sets, whether or not the server gets them."""

    def leave(self, name: str) -> None:
        """Note a name that stays as it was typed."""
        if name not in self.unresolved:
            self.unresolved.append(name)

    def warn(self, text: str) -> None:
        """Note what the person should know."""
        if text not in self.warnings:
            self.warnings.append(text)
