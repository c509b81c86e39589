"""The variables of a pasted text, and what becomes of words that name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from gpu_dash.server.paste.launch import Notes
from gpu_dash.server.paste.shell_words import PLACEHOLDER, Word

_REFERENCE = re.compile(
    r"\$\{(?P<braced>[A-Za-z_]\w*|\d+)(?P<rest>[^}]*)\}"
    r"|\$(?P<name>[A-Za-z_]\w*|\d)"
    r"|\$\((?P<inside>[^()]*(?:\([^()]*\)[^()]*)*)\)"
    r"|\{\{(?P<template>[^{}]*)\}\}"
    r"|`(?P<ticked>[^`]*)`"
)
_ARRAY = re.compile(r"\$\{(\w+)\[[@*]\]\}")
ARGUMENTS = "@"
"""Name of the array that ``set -- …`` sets."""
_ALL_ARGUMENTS = ("$@", "${@}", "$*")
_MAKE_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_TEMPLATE_NAME = re.compile(r"\.?[\w.]+")
_POSITIONAL = re.compile(r"\$\{?([1-9])\b")
_STAND_IN = re.compile(r"your[-_]\w+|\{([A-Za-z_]\w*)\}|\[your[^\]]*\]", re.IGNORECASE)


class Variables:
    """Names and values that the text has set so far.

    Args:
        notes: where names that the text does not set are noted.
        known: values to begin with.
    """

    def __init__(self, notes: Notes, known: Mapping[str, str] | None = None) -> None:
        self._notes = notes
        self._values = dict(known or {})
        self._arrays: dict[str, tuple[str, ...]] = {}
        self._local: set[str] = set()
        self.exported: dict[str, str | None] = {}

    def set(self, name: str, value: str) -> None:
        """``NAME=value``; a value that only a run could tell leaves the name unresolved."""
        if _only_a_run_tells(value):
            self._values.pop(name, None)
            for position in _POSITIONAL.findall(value):
                self._notes.leave(position)
        else:
            self._values[name] = value
        if name in self.exported:
            self.exported[name] = value

    def set_local(self, name: str, value: str) -> None:
        """``local NAME=value``: what a call gives is not missing from the text."""
        self._local.add(name)
        self.set(name, value)

    def note_locals_in(self, texts: Iterable[str]) -> None:
        """Note the ``local`` names that a server's own arguments still hold."""
        for text in texts:
            for match in _REFERENCE.finditer(text):
                name = match["braced"] or match["name"]
                if name in self._local:
                    self._notes.leave(name)

    def set_array(self, name: str, words: tuple[str, ...], *, more: bool) -> None:
        """``NAME=(…)``, or ``NAME+=(…)``."""
        self._arrays[name] = (*(self._arrays.get(name, ()) if more else ()), *words)

    def export(self, name: str, value: str | None = None) -> None:
        """``export NAME[=value]``."""
        if value is not None:
            self.set(name, value)
        self.exported[name] = value if value is not None else self._values.get(name)

    def unset(self, name: str) -> None:
        """``unset NAME``."""
        self._values.pop(name, None)
        self.exported.pop(name, None)

    def get(self, name: str) -> str | None:
        """The value that the text gives."""
        return self._values.get(name)

    def words(self, word: Word) -> Iterator[str]:
        """A word with its variables replaced: one word, several, or none."""
        if word.raw in _ALL_ARGUMENTS and ARGUMENTS in self._arrays:
            yield from self._arrays[ARGUMENTS]
            return
        if array := _ARRAY.fullmatch(word.raw):
            if array[1] in self._arrays:
                yield from self._arrays[array[1]]
            else:
                self._notes.leave(array[1])
            return
        text = self.value(word)
        splits = len(word.pieces) == 1 and not word.pieces[0].quoted and text != word.raw
        if splits:
            yield from text.split()
        else:
            yield text

    def value(self, word: Word) -> str:
        """A word as one text, with its variables replaced."""
        return "".join(
            self.expand(piece.text) if piece.expands else piece.text for piece in word.pieces
        )

    def expand(self, text: str) -> str:
        """A text with its variables replaced; what is not set stays and is noted."""
        for stand_in in PLACEHOLDER.findall(text):
            self._notes.leave(stand_in)
        if stand_in_word := _STAND_IN.fullmatch(text):
            self._notes.leave(stand_in_word[1] or text)
        return _REFERENCE.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        name, rest = match["braced"] or match["name"], match["rest"] or ""
        if match["ticked"] is not None:
            return match[0]
        if match["inside"] is not None:
            name = match["inside"].strip()
            if name.startswith("("):
                for used in re.findall(r"[A-Za-z_]\w*", name):
                    if used not in self._values:
                        self._notes.leave(used)
                return match[0]
            if name not in self._values and not _MAKE_NAME.fullmatch(name):
                return match[0]
        elif match["template"] is not None:
            inside = match["template"].strip()
            found = _TEMPLATE_NAME.match(inside)
            name = found[0] if found else inside
        value = self._values.get(name)
        default = re.match(r":?[-=](.*)", rest, re.DOTALL)
        if value is not None and (not rest or default):
            return value
        if default and default[1]:
            return self.expand(default[1])
        if name not in self._local:
            self._notes.leave(name)
        return match[0]


def _only_a_run_tells(value: str) -> bool:
    """Whether a value has a positional parameter or the output of a command in it."""
    if _POSITIONAL.search(value) or "`" in value:
        return True
    return any(
        match["inside"] is not None and not _MAKE_NAME.fullmatch(match["inside"].strip())
        for match in _REFERENCE.finditer(value)
    )
