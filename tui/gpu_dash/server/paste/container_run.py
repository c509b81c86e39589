"""``docker run``, ``podman run`` and ``nerdctl run`` → image, GPUs, mounts, ports, environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu_dash.server.paste.launch import PastedContainer

_PROGRAMS = frozenset({"docker", "podman", "nerdctl"})
_BARE = frozenset(
    [
        "detach",
        "init",
        "interactive",
        "tty",
        "rm",
        "privileged",
        "read-only",
        "oom-kill-disable",
        "publish-all",
        "replace",
        "no-healthcheck",
        "sig-proxy",
        "disable-content-trust",
        "no-hosts",
        "no-hostname",
        "tls-verify",
        "quiet",
        "http-proxy",
        "rootfs",
        "env-host",
        "passwd",
    ]
)
_BARE_LETTERS = frozenset("ditPq")
_SHORT = {"e": "env", "v": "volume", "p": "publish"}


@dataclass(frozen=True)
class ContainerRun:
    """One ``run`` of a container program."""

    container: PastedContainer
    env: dict[str, str | None]
    env_files: tuple[str, ...]
    entrypoint: str | None
    arguments: tuple[str, ...]
    """Behind the image."""
    options: tuple[str, ...]
    """In front of the image, as typed, without environment and ports."""


@dataclass
class _Options:
    env: dict[str, str | None] = field(default_factory=dict)
    env_files: list[str] = field(default_factory=list)
    gpus: str | None = None
    mounts: list[str] = field(default_factory=list)
    ports: list[str] = field(default_factory=list)
    entrypoint: str | None = None

    def take(self, name: str, value: str) -> bool:
        """Keep an option that says something of the server; whether it was one."""
        name = _SHORT.get(name, name)
        if name == "env":
            variable, equals, text = value.partition("=")
            self.env[variable] = text if equals else None
        elif name == "env-file":
            self.env_files.append(value)
        elif name == "gpus" or (name == "device" and "gpu=" in value):
            more = f"{self.gpus}," if name == "device" and self.gpus else ""
            self.gpus = more + value.strip("\"'")
        elif name == "volume":
            self.mounts.append(value)
        elif name == "mount":
            self.mounts += [mount] if (mount := _bind(value)) else []
        elif name == "publish":
            self.ports.append(value)
        elif name == "entrypoint":
            self.entrypoint = value
        else:
            return False
        return True


def find_container_run(words: Sequence[str]) -> ContainerRun | None:
    """The container that the words run, if they do."""
    for at, word in enumerate(words):
        program = word.rsplit("/", 1)[-1]
        if program not in _PROGRAMS:
            continue
        for verb in range(at + 1, min(at + 5, len(words))):
            if words[verb] in ("run", "create"):
                return _read(program, words[verb + 1 :])
            if not words[verb].startswith("-") and words[verb] != "container":
                break
    return None


def read_options(words: Sequence[str]) -> _Options:
    """Options alone, as the ``PodmanArgs=`` of a unit file has them."""
    options = _Options()
    _consume(list(words), options)
    return options


def _read(program: str, words: Sequence[str]) -> ContainerRun | None:
    rest = list(words)
    options = _Options()
    typed = _consume(rest, options)
    if not rest:
        return None
    return ContainerRun(
        container=PastedContainer(
            image=rest[0],
            gpus=options.gpus,
            mounts=tuple(options.mounts),
            ports=tuple(options.ports),
            program=program,
        ),
        env=options.env,
        env_files=tuple(options.env_files),
        entrypoint=options.entrypoint,
        arguments=tuple(rest[1:]),
        options=tuple(typed),
    )


def _consume(rest: list[str], options: _Options) -> list[str]:
    """Take the options off the front of ``rest``; what stays begins with the image."""
    typed: list[str] = []
    while rest and (not rest[0] or rest[0].startswith("-") or rest[0] == "\\"):
        word = rest.pop(0)
        if word in ("", "-", "--", "\\"):
            continue
        name, value = _name_and_value(word)
        if value is None and name is not None:
            value = rest.pop(0) if rest else ""
            word_pair = [word, value]
        else:
            word_pair = [word]
        if name is None or not options.take(name, value or ""):
            typed += word_pair
    return typed


def _name_and_value(word: str) -> tuple[str | None, str | None]:
    """``(name, value)``; no name: a bare option; no value: it is the next word."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        if equals:
            return name, value
        return (None, None) if name in _BARE or name.startswith("no-") else (name, None)
    letters = word[1:]
    while letters and letters[0] in _BARE_LETTERS:
        letters = letters[1:]
    if not letters:
        return None, None
    return letters[0], letters[1:].removeprefix("=") or None


def _bind(text: str) -> str | None:
    """``type=bind,source=A,target=B,readonly`` → ``A:B:ro``."""
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    source = parts.get("source") or parts.get("src")
    target = parts.get("target") or parts.get("dst") or parts.get("destination")
    if not source or not target:
        return None
    read_only = "readonly" in parts or "ro" in parts
    return f"{source}:{target}{':ro' if read_only else ''}"


def looks_like_vllm(image: str | None) -> bool:
    """Whether an image is one of vLLM, by its name."""
    return bool(image) and re.search("vllm", image or "", re.IGNORECASE) is not None
