"""The words that start a server → program, model, flags and port."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_dash.server.flags.shapes import SHORT_NAMES, is_boolean, takes_several
from gpu_dash.server.paste.launch import Notes, PastedContainer, PastedLaunch, PastedValue

IMAGE_ENTRYPOINT = "image entrypoint"
_MODULE = re.compile(r"vllm(?:\.\w+)*")
_LONG = re.compile(r"--?([A-Za-z][\w-]*)((?:\.[\w-]+)*)(?:=(.*))?", re.DOTALL)
_SHORT_WITH_VALUE = re.compile(r"-([A-Za-z]{1,3}?)(?:=(.*)|(\d.*))", re.DOTALL)
_NUMBER = re.compile(r"-\d[\d.e+-]*")
_LOST_VALUE = re.compile(r"\$\{?\w+(?:\[[@*]\])?\}?")
_ALL_ARGUMENTS = re.compile(r"\$\{?[@*]\}?")
_OWN_FLAG = re.compile(
    r"--(?:served[-_]model[-_]name|max[-_]model[-_]len|tensor[-_]parallel[-_]size"
    r"|gpu[-_]memory[-_]utilization)(?![\w-])"
)
_DOTTED_SHORT = {"O": "compilation-config"}
"""Short names that mean another flag with a key behind them: ``-O.mode=3``."""
_TRUTH = frozenset({"true", "false", "True", "False", "1", "0"})


@dataclass(frozen=True)
class ServerStart:
    """Where in a command the server's own arguments begin."""

    program: str
    before: tuple[str, ...]
    """Words in front of the program: assignments, wrappers."""
    arguments: tuple[str, ...]


def find_server(words: Sequence[str]) -> ServerStart | None:
    """The program that starts a server, if the words hold one."""
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        name = word.rsplit("/", 1)[-1]
        if name in ("vllm", "vllm.exe") and following == "serve":
            return ServerStart("vllm serve", tuple(words[:at]), tuple(words[at + 2 :]))
        if word == "-m" and _MODULE.fullmatch(following):
            rest = tuple(words[at + 2 :])
            program, before = following, tuple(words[: max(0, at - 1)])
            if rest[:1] == ("serve",):
                program = "vllm serve" if program == "vllm" else f"{program} serve"
                return ServerStart(program, before, rest[1:])
            if program.endswith("api_server"):
                return ServerStart(program, before, rest)
        if word == "-m" and "vllm" in following and has_own_flags(words[at + 2 :]):
            return ServerStart(following, tuple(words[: max(0, at - 1)]), tuple(words[at + 2 :]))
        if name == "api_server.py":
            interpreted = at > 0 and "python" in words[at - 1]
            return ServerStart(name, tuple(words[: at - interpreted]), tuple(words[at + 1 :]))
    return None


def has_own_flags(words: Sequence[str]) -> bool:
    """Whether arguments are vLLM's by flags that no other server has."""
    return any(_OWN_FLAG.match(word) for word in words)


def read_server(
    program: str,
    arguments: Sequence[str],
    notes: Notes,
    env: Mapping[str, str | None],
    container: PastedContainer | None = None,
) -> PastedLaunch:
    """Flags, model and port of a server's arguments."""
    flags: dict[str, PastedValue] = {}
    positional: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        split = _flag(word)
        if split is None:
            if not word or word in ("--", "\\") or _ALL_ARGUMENTS.fullmatch(word):
                continue
            if _LOST_VALUE.fullmatch(word) and (positional or "model" in flags):
                notes.warn(f"{word} stands for further arguments that the text does not give")
                continue
            positional.append(word)
            continue
        name, value = split
        flags[name] = value if value is not None else _value(name, rest)
    if program == IMAGE_ENTRYPOINT and positional[:1] == ["serve"] and len(positional) > 1:
        positional.pop(0)
        notes.warn("the image's entry point is vllm serve already: a second serve is refused")
    model = _taken(flags, "model") or _taken(flags, "model-tag")
    if positional and (model is None or program.endswith("serve")):
        model = positional[0]
    for extra in positional[1:]:
        notes.warn(f"{extra!r} belongs to no flag; it was left out")
    port = _taken(flags, "port")
    return PastedLaunch(
        program=program,
        model=model,
        flags=flags,
        port=int(port) if port is not None and port.isdecimal() else port,
        env=env,
        container=container,
    )


def _taken(flags: dict[str, PastedValue], name: str) -> str | None:
    value = flags.pop(name, None)
    if value is None or isinstance(value, str):
        return value
    return value[0] if isinstance(value, list) else None


def _flag(word: str) -> tuple[str, str | None] | None:
    """Name and value of a word that is a flag; ``None`` if it is none."""
    if not word.startswith("-") or _NUMBER.fullmatch(word):
        return None
    if not word.startswith("--"):
        name, _, value = word[1:].partition("=")
        if name in SHORT_NAMES:
            return SHORT_NAMES[name], value if "=" in word else None
        head, dot, key = name.partition(".")
        if dot and head in SHORT_NAMES:
            long = _DOTTED_SHORT.get(head, SHORT_NAMES[head])
            return f"{long}.{key}", value if "=" in word else None
        if (short := _SHORT_WITH_VALUE.fullmatch(word)) and short[1] in SHORT_NAMES:
            return SHORT_NAMES[short[1]], short[2] if short[2] is not None else short[3]
    match = _LONG.fullmatch(word)
    if match is None:
        return None
    return match[1].replace("_", "-") + match[2], match[3]


def _value(name: str, rest: list[str]) -> PastedValue:
    """The value that follows a flag; it is taken off the rest."""
    values: list[str] = []
    if is_boolean(name):
        return rest.pop(0) if rest and rest[0] in _TRUTH else True
    while rest and _flag(rest[0]) is None:
        values.append(rest.pop(0))
        if not takes_several(name):
            break
    if not values:
        return True
    return values[0] if len(values) == 1 else values
