"""Changes in the text of a profile: its comments, its order and its spacing stay."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from gpu_dash.model.errors import UsageError
from gpu_dash.model.profile import Profile
from gpu_dash.server.profile_file import own_copy_of

_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w.-]+)\s*=""")
_OWN_TABLES = ("flags", "env")


def with_corrections(text: str, corrected: Profile) -> str:
    """The text of a profile with the flags and variables of a corrected one.

    Args:
        text: the TOML as it stands.
        corrected: the same profile, with other ``server.flags`` and ``server.env``.

    Raises:
        UsageError: the text is written in a way that cannot be changed without its comments
            coming to harm, as with the flags in one line.
    """
    data = tomllib.loads(text)
    wanted: dict[str, Mapping[str, Any]] = {
        "flags": corrected.server.flags,
        "env": corrected.server.env,
    }
    before = {name: data.get("server", {}).get(name, {}) for name in _OWN_TABLES}
    for name in _OWN_TABLES:
        text = _with_table(text, f"server.{name}", before[name], wanted[name])
    try:
        after = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        after = {}
    if after != _with(data, wanted):
        raise UsageError(
            "its flags or variables are written in a way that gpu-dash does not change by itself; "
            "edit the file by hand"
        )
    return text


def keep_corrected(path: Path, corrected: Profile) -> Path:
    """Write the corrections of a profile into the user's file of it.

    Args:
        path: the file that the profile was read from.
        corrected: that profile, put right.

    Returns:
        the file that holds them now.

    Raises:
        UsageError: it cannot be read, changed safely, or written.
    """
    kept = own_copy_of(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    write_profile(kept, with_corrections(text, corrected))
    return kept


def write_profile(path: Path, text: str) -> None:
    """Write a profile whole or not at all, for its owner alone.

    Raises:
        UsageError: it cannot be written.
    """
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.write_text(text, encoding="utf-8")
        new.chmod(0o600)
        new.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _with(data: dict[str, Any], wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the changed text has to say."""
    server = dict(data.get("server", {}))
    for name, values in wanted.items():
        if values or name in server:
            server[name] = dict(values)
    return {**data, "server": server}


def _with_table(text: str, table: str, before: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The text with one table changed: lines of keys that go are taken out, those of keys that
    change are written anew, new ones follow the last."""
    if before == wanted:
        return text
    lines = text.splitlines()
    span = _span(lines, table)
    if span is None:
        return "\n".join([*lines, "", f"[{table}]", *_written(wanted), ""])
    start, end = span
    body: list[str] = []
    added = {name: value for name, value in wanted.items() if name not in before}
    for name, entry in _entries(lines[start:end]):
        if name is None or (name in wanted and before.get(name) == wanted[name]):
            body += entry
        elif name in wanted:
            body += [line + _comment(entry) for line in _written({name: wanted[name]})]
    while body and not body[-1].strip():
        body.pop()
    body += _written(added)
    gap = [""] if end < len(lines) else []
    return "\n".join([*lines[:start], *body, *gap, *lines[end:], ""])


def _span(lines: list[str], table: str) -> tuple[int, int] | None:
    """Where the lines of a table begin and end."""
    start = None
    for at, line in enumerate(lines):
        header = _HEADER.fullmatch(line)
        if header is not None and start is not None:
            return start, _without_head(lines, start, at)
        if header is not None and re.sub(r"\s", "", header[1]) == table:
            start = at + 1
    return None if start is None else (start, len(lines))


def _without_head(lines: list[str], start: int, end: int) -> int:
    """The end without the comments that stand right above the next table: they are its own."""
    while end > start and lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return end


def _entries(lines: list[str]) -> Iterator[tuple[str | None, list[str]]]:
    """``(key, its lines)`` in order; comments and blanks have no key."""
    at = 0
    while at < len(lines):
        key = _KEY.match(lines[at])
        if key is None:
            yield None, [lines[at]]
            at += 1
            continue
        end = at + 1
        while end < len(lines) and not _is_whole("\n".join(lines[at:end])):
            end += 1
        yield key[1].strip("\"'"), lines[at:end]
        at = end


def _is_whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _written(values: Mapping[str, Any]) -> list[str]:
    return tomli_w.dumps(dict(values)).splitlines()


def _comment(entry: list[str]) -> str:
    """The comment behind a value of one line."""
    if len(entry) > 1:
        return ""
    line = entry[0]
    for found in re.finditer("#", line):
        if _is_whole(line[: found.start()]):
            return "  " + line[found.start() :]
    return ""
