"""A pasted shell script → the servers that it starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gpu_dash.server.paste.container_run import ContainerRun, find_container_run, looks_like_vllm
from gpu_dash.server.paste.launch import Notes, PastedContainer, PastedLaunch
from gpu_dash.server.paste.secrets import is_secret_name, is_secret_value
from gpu_dash.server.paste.server_words import (
    IMAGE_ENTRYPOINT,
    ServerStart,
    find_server,
    has_own_flags,
    read_server,
)
from gpu_dash.server.paste.shell_words import ShellCommand, ShellReader, Word
from gpu_dash.server.paste.variables import ARGUMENTS, Variables

MAX_DEPTH = 8
"""Shells in shells, deeper than anybody writes them by hand."""
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
_FAR_FROM_A_SERVER = frozenset(
    [
        "echo",
        "printf",
        "pkill",
        "pgrep",
        "killall",
        "kill",
        "grep",
        "curl",
        "wget",
        "pip",
        "pip3",
        "ps",
        "which",
        "type",
        "man",
        "source",
        "alias",
        "trap",
        "log",
        "log_info",
        "logger",
        "info",
        "print",
        "warn",
    ]
)
_FISH_EXPORT = re.compile(r"-[gUlq]*x[gUlq]*|--export")
"""``set -gx NAME VALUE`` of fish; ``set -ex`` of other shells sets options of the shell."""
_EXPORTS = frozenset({"export", "setenv"})
_DECLARES = frozenset({"local", "readonly", "declare", "typeset"})
_OPTIONS_WITH_PAIRS = frozenset({"-p", "--property", "-o", "-l", "--label"})
_OPENERS = frozenset({"then", "else", "do", "if", "while", "{", "!", "(", "time"})


class ScriptReader:
    """Walks through the commands of one text.

    Args:
        notes: where unresolved names and warnings go.
        known: variables to begin with.
        container: the container that the commands run in, if the text around them says so.
        env: what that container is given.
        depth: how many shells and here-documents the commands stand in.
    """

    def __init__(
        self,
        notes: Notes,
        known: Mapping[str, str] | None = None,
        container: PastedContainer | None = None,
        env: Mapping[str, str | None] | None = None,
        depth: int = 0,
    ) -> None:
        self._depth = depth
        self._notes = notes
        self._variables = Variables(notes, known)
        self._container = container
        self._env = dict(env or {})
        self._folder: str | None = None
        self._heredocs: list[str] = []

    def servers(self, text: str) -> list[PastedLaunch]:
        """Every server that the text starts, in its order."""
        reader = ShellReader(text)
        found: list[PastedLaunch] = []
        commands = _joined(list(reader.commands()), self._notes)
        for command in commands:
            found += self._command(command)
        if reader.broken_continuations and found:
            self._notes.warn(
                "a backslash is followed by a blank or a comment: a shell would end the command "
                "there; it was read to its end"
            )
        heredocs, self._heredocs = self._heredocs, []
        for body in heredocs:
            if not found and "vllm" in body and self._depth < MAX_DEPTH:
                self._depth += 1
                found += self.servers(body)
                self._depth -= 1
        return found

    def _command(self, command: ShellCommand) -> Iterator[PastedLaunch]:
        self._heredocs += command.heredocs
        words = command.words
        while words and words[0].raw in _OPENERS:
            words = words[1:]
        if not words or self._sets_variables(words):
            return
        prefix: dict[str, str | None] = {}
        while words and (match := _assignment(words[0])) is not None:
            prefix[match[1]] = self._value_behind_equals(words[0])
            words = words[1:]
        texts = [text for word in words for text in self._variables.words(word)]
        for target in command.targets:
            self._variables.value(target)
        if not texts:
            for name, value in prefix.items():
                self._variables.set(name, value or "")
            return
        program = texts[0].rsplit("/", 1)[-1]
        if program == "cd" and len(texts) > 1:
            self._folder = texts[1]
        elif program not in _FAR_FROM_A_SERVER:
            yield from self._server_in(texts, prefix)

    def _server_in(
        self, texts: Sequence[str], prefix: Mapping[str, str | None]
    ) -> Iterator[PastedLaunch]:
        """The server that these words start, directly, in a container or in a nested shell."""
        if (run := find_container_run(texts)) is not None:
            yield from self._in_container(run, prefix)
            return
        start = find_server(texts)
        if start is not None:
            yield self._launch(start, prefix)
            return
        if self._depth >= MAX_DEPTH:
            return
        for text in texts[1:]:
            if "vllm" in text and any(blank in text.strip() for blank in " \n"):
                yield from self._nested(self._container, {**self._env, **prefix}).servers(text)

    def _launch(self, start: ServerStart, prefix: Mapping[str, str | None]) -> PastedLaunch:
        inline = _assignments_in(start.before)
        env = {**self._env, **self._variables.exported, **prefix, **inline}
        launch = read_server(start.program, start.arguments, self._notes, env, self._container)
        self._variables.note_locals_in(
            str(value) for value in (launch.model, launch.port, *launch.flags.values())
        )
        model = launch.model or ""
        if self._folder and model.startswith(("./", "../")):
            self._notes.warn(f"the model's path is relative to {self._folder}")
        return launch

    def _in_container(
        self, run: ContainerRun, prefix: Mapping[str, str | None]
    ) -> Iterator[PastedLaunch]:
        self._tell_what_stays_outside(run, prefix)
        for path in run.env_files:
            self._notes.warn(f"--env-file {path}: what is in it is not known here")
        words = [*([run.entrypoint] if run.entrypoint else []), *run.arguments]
        start = find_server(words)
        if start is not None:
            env = {**run.env, **_assignments_in(start.before)}
            yield read_server(start.program, start.arguments, self._notes, env, run.container)
            return
        nested = [text for text in words if "vllm" in text and " " in text.strip()]
        if nested and self._depth < MAX_DEPTH:
            for text in nested:
                yield from self._nested(run.container, run.env).servers(text)
        elif not _is_shell(words) and (
            looks_like_vllm(run.container.image) or has_own_flags(run.arguments)
        ):
            arguments = run.arguments
            if run.entrypoint and "serve" in arguments[:1]:
                arguments = arguments[1:]
            yield read_server(IMAGE_ENTRYPOINT, arguments, self._notes, run.env, run.container)

    def _tell_what_stays_outside(self, run: ContainerRun, prefix: Mapping[str, str | None]) -> None:
        for name in {**self._env, **prefix}:
            if name.endswith("_VISIBLE_DEVICES") and name not in run.env:
                self._notes.warn(
                    f"{name} is given to {run.container.program}, not to the container: "
                    f"write -e {name}=…"
                )
        image = run.container.image or ""
        if "$" in (run.container.gpus or "") or "$" in image:
            self._notes.warn(
                f"{run.container.gpus if '$' in (run.container.gpus or '') else image}: "
                "the variable was not replaced; single quotes keep it as it stands"
            )

    def _nested(
        self, container: PastedContainer | None, env: Mapping[str, str | None]
    ) -> ScriptReader:
        known = {name: value for name, value in env.items() if value is not None}
        return ScriptReader(self._notes, known, container, env, self._depth + 1)

    def _sets_variables(self, words: Sequence[Word]) -> bool:
        """Whether the command only sets variables; they are set."""
        first = words[0].raw
        if first in _EXPORTS or first in _DECLARES or first in ("set", "unset"):
            self._declare(first, words[1:])
            return True
        if len(words) >= 2 and words[1].raw in (":=", "?=", "=", "::=") and _NAME.fullmatch(first):
            self._set(first, " ".join(self._variables.value(word) for word in words[2:]))
            return True
        if all(_assignment(word) is not None for word in words):
            for word in words:
                self._assign(word, export=False)
            return True
        return False

    def _declare(self, verb: str, words: Sequence[Word]) -> None:
        if verb == "set" and words and words[0].raw == "--":
            texts = tuple(text for word in words[1:] for text in self._variables.words(word))
            self._variables.set_array(ARGUMENTS, texts, more=False)
            return
        options = [word.raw for word in words if word.raw.startswith("-")]
        words = [word for word in words if not word.raw.startswith("-")]
        is_fish = any(_FISH_EXPORT.fullmatch(option) for option in options)
        exports = verb in _EXPORTS or (is_fish if verb == "set" else "-x" in options)
        if verb == "set" and options and not is_fish:
            return
        if verb == "unset":
            for word in words:
                self._variables.unset(word.raw)
            return
        if verb == "setenv" or (verb == "set" and exports and len(words) == 2):
            if len(words) == 2:
                self._variables.export(words[0].raw, self._variables.value(words[1]))
            return
        for word in words:
            if _assignment(word) is not None:
                self._assign(word, export=exports or verb == "set", local=verb == "local")
            elif exports and _NAME.fullmatch(word.raw):
                self._variables.export(word.raw)

    def _assign(self, word: Word, *, export: bool, local: bool = False) -> None:
        match = _assignment(word)
        if match is None:
            return
        name = match[1]
        if word.array is not None:
            texts = tuple(text for one in word.array for text in self._variables.words(one))
            self._variables.set_array(name, texts, more=bool(match[2]))
            return
        value = self._value_behind_equals(word)
        if match[2]:
            value = (self._variables.get(name) or "") + value
        if local:
            self._variables.set_local(name, value)
        elif export:
            self._variables.export(name, value)
            self._note_secret(name, value)
        else:
            self._set(name, value)

    def _set(self, name: str, value: str) -> None:
        self._variables.set(name, value)
        self._note_secret(name, value)

    def _note_secret(self, name: str, value: str) -> None:
        if is_secret_name(name) and is_secret_value(value) and name not in self._notes.secrets:
            self._notes.secrets.append(name)

    def _value_behind_equals(self, word: Word) -> str:
        text = self._variables.value(word)
        return text.partition("=")[2]


def _assignments_in(words: Sequence[str]) -> dict[str, str]:
    """Variables that a wrapper in front of the server is given: ``env A=1``, ``sudo -E A=1``,
    ``systemd-run --setenv=A=1``; not the values of its other options."""
    found: dict[str, str] = {}
    before = ""
    for word in words:
        match = _ASSIGNMENT.fullmatch(word.removeprefix("--setenv="))
        if match is not None and before not in _OPTIONS_WITH_PAIRS:
            found[match[1]] = match[3]
        before = word
    return found


def _assignment(word: Word) -> re.Match[str] | None:
    """``NAME=…`` whose name is not quoted."""
    if not word.pieces or word.pieces[0].quoted:
        return None
    return _ASSIGNMENT.fullmatch(word.raw)


def _joined(commands: list[ShellCommand], notes: Notes) -> list[ShellCommand]:
    """Commands with those that begin with a flag put behind the one before: their backslash is
    missing, or a comment stood in between."""
    joined: list[ShellCommand] = []
    for command in commands:
        first = command.words[0].raw
        if joined and first.startswith("--") and len(first) > 2:
            notes.warn(
                f"the line before {first} ends without a backslash: a shell would run {first} "
                "as a command of its own; it was taken as meant"
            )
            joined[-1].words += command.words
            joined[-1].targets += command.targets
        else:
            joined.append(command)
    return joined


def _is_shell(words: Sequence[str]) -> bool:
    program = words[0].rsplit("/", 1)[-1] if words else ""
    return program in ("bash", "sh", "sleep", "python", "python3", "ray", "nvidia-smi")
