"""systemd units and podman quadlets → the server that they start."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from gpu_dash.server.paste.container_run import read_options
from gpu_dash.server.paste.launch import Notes, PastedContainer, PastedLaunch
from gpu_dash.server.paste.script import ScriptReader
from gpu_dash.server.paste.server_words import IMAGE_ENTRYPOINT, find_server, read_server
from gpu_dash.server.paste.shell_words import ShellReader
from gpu_dash.server.paste.variables import Variables

_SECTION = re.compile(r"^[ \t]*\[(Unit|Service|Container|Install)\][ \t]*$", re.MULTILINE)
_SETTING = re.compile(r"[ \t]*([A-Za-z]\w*)[ \t]*=[ \t]*(.*)", re.DOTALL)
_START_PREFIX = "-@:+!|"


def is_unit_file(text: str) -> bool:
    """Whether a text is a unit file, or a part of one."""
    return _SECTION.search(text) is not None or re.search(r"^\s*ExecStart=", text, re.M) is not None


def servers_of_unit(text: str, notes: Notes) -> list[PastedLaunch]:
    """The servers of a unit file."""
    settings = _settings(text)
    env = _environment(settings, notes)
    for path in settings["EnvironmentFile"]:
        notes.warn(f"EnvironmentFile={path}: what is in it is not known here")
    if settings["Image"]:
        return [_of_quadlet(settings, env, notes)]
    known = {name: value for name, value in env.items() if value is not None}
    found: list[PastedLaunch] = []
    for start in settings["ExecStart"]:
        reader = ScriptReader(notes, known, env=env)
        found += reader.servers(start.lstrip(_START_PREFIX))
    return found


def _settings(text: str) -> Mapping[str, list[str]]:
    """Every setting with its values in order; comments between continued lines are skipped."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("#", ";"))]
    settings: dict[str, list[str]] = defaultdict(list)
    for line in re.sub(r"\\[ \t]*\n", " ", "\n".join(lines)).splitlines():
        if match := _SETTING.fullmatch(line):
            settings[match[1]].append(match[2].strip())
    return settings


def _environment(settings: Mapping[str, list[str]], notes: Notes) -> dict[str, str | None]:
    env: dict[str, str | None] = {}
    for line in settings["Environment"]:
        for word in _words(line, notes, {}):
            name, equals, value = word.partition("=")
            if equals:
                env[name] = value
    return env


def _of_quadlet(
    settings: Mapping[str, list[str]], env: dict[str, str | None], notes: Notes
) -> PastedLaunch:
    options = read_options(
        [word for line in settings["PodmanArgs"] for word in _words(line, notes, {})]
    )
    gpus = next((device for device in settings["AddDevice"] if "gpu=" in device), options.gpus)
    variables = Variables(notes, {})
    container = PastedContainer(
        image=variables.expand(settings["Image"][0]),
        gpus=gpus,
        mounts=tuple(map(variables.expand, (*settings["Volume"], *options.mounts))),
        ports=tuple(map(variables.expand, (*settings["PublishPort"], *options.ports))),
        program="podman",
    )
    env = {**env, **options.env}
    known = {name: value for name, value in env.items() if value is not None}
    words = [
        word
        for line in (*settings["Entrypoint"], *settings["Exec"])
        for word in _words(line, notes, known)
    ]
    start = find_server(words)
    if start is not None:
        return read_server(start.program, start.arguments, notes, env, container)
    return read_server(IMAGE_ENTRYPOINT, words, notes, env, container)


def _words(line: str, notes: Notes, known: Mapping[str, str]) -> list[str]:
    variables = Variables(notes, known)
    return [
        text
        for command in ShellReader(line).commands()
        for word in command.words
        for text in variables.words(word)
    ]
