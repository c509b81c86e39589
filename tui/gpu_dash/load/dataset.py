"""Prompts from a file: ShareGPT's JSON, or JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from gpu_dash.model.errors import UsageError

MAX_PROMPTS = 20_000
"""More are left out: they would only take memory."""

_TEXT_FIELDS = ("prompt", "text", "question", "instruction")
_PEOPLE = ("human", "user")


def read_dataset(path: str) -> tuple[tuple[str, ...], ...]:
    """The prompts of a file, in its order: of each entry what the person says, turn by turn.

    A file is a JSON list or has one JSON object a line. An entry is a text, an object with a
    ``prompt`` (or ``text``, ``question``, ``instruction``), or a conversation (``conversations``
    with ``from`` and ``value``, ``messages`` with ``role`` and ``content``), of which the
    person's turns are taken. Entries without a text are passed over.

    Raises:
        UsageError: the file cannot be read, or has no prompt in it.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            head = file.read(1)
            while head.isspace():
                head = file.read(1)
            file.seek(0)
            entries = json.load(file) if head == "[" else _lines(file)
            prompts = tuple(_first(_prompts(entries), MAX_PROMPTS))
    except OSError as error:
        raise UsageError(f"dataset {path}: {error.strerror}; check the path") from error
    except ValueError as error:
        raise UsageError(f"dataset {path}: {error}; it wants a JSON list or JSON Lines") from error
    if not prompts:
        raise UsageError(
            f"dataset {path}: no prompt in it; an entry wants `prompt`, `conversations` or "
            "`messages`"
        )
    return prompts


def _lines(file: Iterable[str]) -> Iterator[Any]:
    for number, line in enumerate(file, 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error


def _prompts(entries: Iterable[Any]) -> Iterator[tuple[str, ...]]:
    for entry in entries:
        turns = tuple(_turns_of(entry))
        if turns:
            yield turns


def _turns_of(entry: Any) -> Iterator[str]:
    """What the person says, up to the first turn that is no text."""
    if isinstance(entry, str):
        entry = {_TEXT_FIELDS[0]: entry}
    if not isinstance(entry, dict):
        return
    for field in _TEXT_FIELDS:
        if isinstance(entry.get(field), str):
            if entry[field]:
                yield entry[field]
            return
    turns = entry.get("conversations") or entry.get("messages")
    for turn in turns if isinstance(turns, list) else ():
        if isinstance(turn, dict) and (turn.get("from") or turn.get("role")) in _PEOPLE:
            text = turn.get("value") or turn.get("content")
            if not isinstance(text, str) or not text:
                return
            yield text


def _first(prompts: Iterator[tuple[str, ...]], count: int) -> Iterator[tuple[str, ...]]:
    for _, prompt in zip(range(count), prompts, strict=False):
        yield prompt
