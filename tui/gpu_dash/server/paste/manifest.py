"""Compose files and Kubernetes manifests → the server among their containers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from yaml.resolver import Resolver

from gpu_dash.server.paste.container_run import looks_like_vllm
from gpu_dash.server.paste.launch import Notes, PastedContainer, PastedLaunch
from gpu_dash.server.paste.manifest_container import container_of
from gpu_dash.server.paste.script import ScriptReader
from gpu_dash.server.paste.server_words import (
    IMAGE_ENTRYPOINT,
    find_server,
    has_own_flags,
    read_server,
)
from gpu_dash.server.paste.shell_words import ShellReader
from gpu_dash.server.paste.variables import Variables

_KEY_LINE = re.compile(
    r"^\s*(?:-\s+)?(?:image|args|command|services|containers|apiVersion|entrypoint|run|script|cmds)\s*:",
    re.MULTILINE,
)
_TEMPLATE_LINE = re.compile(r"^[ \t]*\{\{-?[^\n]*\}\}[ \t]*$", re.MULTILINE)
_TEMPLATE_VALUE = re.compile(
    r"^(\s*(?:-\s+)?(?:[\w./-]+:\s+|-\s+))(\{\{.*\}\}[^\"'\n#]*?)[ \t]*$", re.M
)


MAX_NODES, MAX_DEPTH = 20_000, 100
"""Far above any manifest that a person pastes."""


class _TextLoader(yaml.SafeLoader):
    """Every scalar is text, as it stands; ``<<`` still merges."""


_TextLoader.yaml_implicit_resolvers = {
    "<": [
        (tag, pattern)
        for tag, pattern in Resolver.yaml_implicit_resolvers["<"]
        if tag.endswith(":merge")
    ]
}


def is_manifest(text: str) -> bool:
    """Whether a text looks like YAML with containers in it."""
    return _KEY_LINE.search(text) is not None and _documents(text) is not None


def servers_of_manifest(text: str, notes: Notes) -> list[PastedLaunch]:
    """The servers among the containers of a text, those that say so most plainly first."""
    found: list[PastedLaunch] = []
    documents = _documents(text) or []
    for node in _containers(documents):
        found += _server_of(node, notes)
    return found or [server for node in documents for server in _scripts(node, {}, notes)]


def _scripts(node: Any, env: Mapping[str, str | None], notes: Notes) -> Iterator[PastedLaunch]:
    """Servers that the scripts of a task file start, as SkyPilot and CI have them: with the
    variables that stand beside or above a script."""
    if isinstance(node, list):
        lines = [line for line in node if isinstance(line, str)]
        if lines and len(lines) == len(node):
            yield from _scripts("\n".join(lines), env, notes)
        else:
            for one in node:
                yield from _scripts(one, env, notes)
    elif isinstance(node, dict):
        here = {**env, **_environment({"env": node.get("env"), "environment": node.get("envs")})}
        secrets = node.get("secrets")
        here |= _environment({"environment": secrets if isinstance(secrets, dict) else None})
        for one in node.values():
            yield from _scripts(one, here, notes)
    elif isinstance(node, str) and "vllm" in node:
        known = {name: value for name, value in env.items() if value is not None}
        within = Variables(notes, known)
        known = {name: within.expand(value) for name, value in known.items()}
        yield from ScriptReader(notes, known, None, {**env, **known}).servers(node)


def _documents(text: str) -> list[Any] | None:
    """The YAML documents with every scalar as text; ``None``: it is no YAML of ours."""
    text = _TEMPLATE_LINE.sub("", text.replace("\t", "  "))
    text = _TEMPLATE_VALUE.sub(r"\1'\2'", text)
    try:
        documents = list(yaml.load_all(text, Loader=_TextLoader))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None
    if _nodes(documents, MAX_DEPTH, MAX_NODES) > MAX_NODES:
        return None
    return documents if any(isinstance(one, dict | list) for one in documents) else None


def _nodes(node: Any, depth: int, most: int) -> int:
    """How many nodes there are, aliases counted where they are used; more than ``most`` is enough
    to know, and so is a node that holds itself."""
    if not isinstance(node, dict | list):
        return 1
    if depth == 0:
        return most + 1
    count = 1
    for one in node.values() if isinstance(node, dict) else node:
        count += _nodes(one, depth - 1, most - count)
        if count > most:
            break
    return count


def _containers(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping that has an image, a command or arguments."""
    if isinstance(node, list):
        for one in node:
            yield from _containers(one)
    elif isinstance(node, dict):
        if any(isinstance(node.get(key), str | list) for key in ("image", "command", "args")):
            yield node
            return
        for key, one in node.items():
            if not str(key).startswith("x-"):
                yield from _containers(one)


def _server_of(node: Mapping[str, Any], notes: Notes) -> list[PastedLaunch]:
    env = _environment(node)
    _tell_of_files(node, notes)
    within = Variables(notes, {name: value for name, value in env.items() if value})
    env = {name: None if value is None else within.expand(value) for name, value in env.items()}
    known = {name: value for name, value in env.items() if value is not None}
    container = container_of(node, Variables(notes, known))
    own_program = [
        *_words(node, "entrypoint", notes, known),
        *_words(node, "command", notes, known),
    ]
    words = [*own_program, *_words(node, "args", notes, known)]
    start = find_server(words)
    if start is not None:
        _tell_of_ports(container, start.arguments, notes)
        return [read_server(start.program, start.arguments, notes, env, container)]
    nested = [word for word in words if " " in word.strip() and "vllm" in word]
    if nested:
        reader = ScriptReader(notes, known, container, env)
        found = [server for text in nested for server in reader.servers(text)]
        if found and words[0] == nested[0]:
            notes.warn("the whole command line is one word: it would be looked up as one program")
        return found
    is_foreign = bool(words) and not words[0].startswith("-") and words[0] in _FOREIGN_PROGRAMS
    plainly = has_own_flags(words)
    names = (container.image, str(node.get("name", "")), str(node.get("container_name", "")))
    if is_foreign or not (plainly or any(looks_like_vllm(name) for name in names)):
        return []
    _tell_of_ports(container, words, notes)
    return [read_server(IMAGE_ENTRYPOINT, words, notes, env, container)]


_FOREIGN_PROGRAMS = frozenset(
    {"sh", "bash", "/bin/sh", "/bin/bash", "python", "python3", "ray", "sleep"}
)


def _words(node: Mapping[str, Any], key: str, notes: Notes, known: Mapping[str, str]) -> list[str]:
    """The words of a command, given as one text or as a list."""
    value = node.get(key)
    variables = Variables(notes, known)
    if isinstance(value, str):
        return [
            text
            for command in ShellReader(value.replace("$$", "\\$")).commands()
            for word in command.words
            for text in variables.words(word)
        ]
    if not isinstance(value, list):
        return []
    words: list[str] = []
    for item in value:
        text = variables.expand(
            str(item).replace("$$", "$") if "vllm" not in str(item) else str(item)
        )
        flag, blank, rest = text.partition(" ")
        if blank and flag.startswith("--") and "=" not in flag and "{" not in flag:
            notes.warn(f"{flag!r} and its value are one word in the list; write them as two")
            words += [flag, rest.strip()]
        else:
            words.append(text)
    return words


def _environment(node: Mapping[str, Any]) -> dict[str, str | None]:
    env: dict[str, str | None] = {}
    compose = node.get("environment")
    if isinstance(compose, dict):
        env |= {
            str(name): None if value in (None, "") else str(value)
            for name, value in compose.items()
        }
    elif isinstance(compose, list):
        for item in compose:
            name, equals, value = str(item).partition("=")
            env[name] = value if equals else None
    kubernetes = node.get("env")
    if isinstance(kubernetes, list):
        for item in kubernetes:
            if isinstance(item, dict) and "name" in item:
                given = item.get("value")
                env[str(item["name"])] = None if given is None else str(given)
    elif isinstance(kubernetes, dict):
        env |= {str(name): str(value) for name, value in kubernetes.items()}
    return env


def _tell_of_files(node: Mapping[str, Any], notes: Notes) -> None:
    """Note where further variables come from that the text does not show."""
    files = node.get("env_file")
    for entry in files if isinstance(files, list) else [files]:
        path = entry.get("path") if isinstance(entry, dict) else entry
        if path:
            notes.warn(f"env_file {path}: what is in it is not known here")
    sources = node.get("envFrom")
    for entry in sources if isinstance(sources, list) else ():
        kinds = [kind for kind in entry if kind.endswith("Ref")] if isinstance(entry, dict) else []
        for kind in kinds:
            name = entry[kind].get("name") if isinstance(entry[kind], dict) else ""
            notes.warn(f"envFrom {kind} {name}: what is in it is not known here")


def _tell_of_ports(container: PastedContainer, words: Sequence[str], notes: Notes) -> None:
    """Warn where the container offers a port on which vLLM does not listen."""
    text = " ".join(words)
    listens = re.search(r"--port[= ](\d+)", text)
    port = listens[1] if listens else "8000"
    offered = {entry.rsplit(":", 1)[-1].partition("/")[0] for entry in container.ports}
    if offered and port not in offered and all(entry.isdecimal() for entry in offered):
        notes.warn(
            f"the container offers port {', '.join(sorted(offered))} but vLLM listens on {port}"
        )
