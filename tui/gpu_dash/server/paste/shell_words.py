"""Shell text → commands made of words, with what quotes protect told apart.

Forgiving where people's pastes are broken: a backslash followed by a space or a comment, lines
flattened into one, a quote that is never closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_UNCLOSED = 100
"""Brackets that are never closed, after which no more are looked for: the text is none to read."""
PLACEHOLDER = re.compile(r"<[A-Za-z](?:[^<>\n]*[^<>\s])?>")
_OPERATOR = re.compile(r"&&|\|\||;;|[;|()\n]|&(?!>)")
_REDIRECT = re.compile(r"(?:\d|&)?(?:>>|>&|>\||<&|>|<(?!<))(?:\s*(?:-|\d)(?=\s|$))?")
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1")
_ESCAPED = re.compile(r"\\([\\$`])")
"""What a backslash protects in a here-document whose mark is not quoted."""
_FLATTENED = re.compile(r"\\[ \t]+")
_CUT_CONTINUATION = re.compile(r"\\[ \t]+(?:#[^\n]*)?\n|\\[ \t]*#[^\n]*\n|\\\n(?:[ \t]*#[^\n]*\n)+")
_TICKED_COMMENT = re.compile(r"`#[^`\n]*`")
"""A comment inside of a continued command: an empty command's output."""


@dataclass(frozen=True)
class Piece:
    """A part of a word."""

    text: str
    expands: bool
    """Whether ``$`` means a variable in it."""
    quoted: bool


@dataclass(frozen=True)
class Word:
    """One word before its variables are replaced."""

    pieces: tuple[Piece, ...]
    array: tuple[Word, ...] | None = None
    """``NAME=(…)``: the words between the brackets."""

    @property
    def raw(self) -> str:
        """The text as typed, without the quotes."""
        return "".join(piece.text for piece in self.pieces)


@dataclass
class ShellCommand:
    """The words up to the next operator."""

    words: list[Word] = field(default_factory=list)
    targets: list[Word] = field(default_factory=list)
    """Files that its output goes to."""
    heredocs: list[str] = field(default_factory=list)


class ShellReader:
    """Reads one text.

    Args:
        text: plain text of a script.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._pending: list[tuple[ShellCommand, str, bool]] = []
        self.broken_continuations = 0
        self._unclosed = 0
        self._in_array = False

    def commands(self) -> Iterator[ShellCommand]:
        """The commands in their order, whatever operator is between them."""
        command = ShellCommand()
        while self._at < len(self._text):
            if self._skip_blank():
                continue
            if heredoc := _HEREDOC.match(self._text, self._at):
                self._pending.append((command, heredoc[2], not heredoc[1]))
                self._at = heredoc.end()
            elif (redirect := self._redirect()) is not None:
                self._at = redirect.end()
                if not redirect[0].rstrip()[-1:].isdigit() and redirect[0][-1:] != "-":
                    self._skip_blank()
                    command.targets += [self._word()] if self._at < len(self._text) else []
            elif operator := _OPERATOR.match(self._text, self._at):
                self._at = operator.end()
                if command.words:
                    yield command
                    command = ShellCommand()
                if operator[0] == "\n":
                    self._read_heredocs()
            else:
                command.words.append(self._word())
        if command.words:
            yield command

    def _skip_blank(self) -> bool:
        """Go past blanks, comments and continuations; whether there were any."""
        text, start = self._text, self._at
        if start >= len(text):
            return False
        if cut := _CUT_CONTINUATION.match(text, self._at):
            self.broken_continuations += 1
            self._at = cut.end()
        elif text.startswith("\\\n", self._at):
            self._at += 2
        elif ticked := _TICKED_COMMENT.match(text, self._at):
            self._at = ticked.end()
        elif flattened := _FLATTENED.match(text, self._at):
            self._at = flattened.end()
        elif text[self._at] in " \t":
            self._at += 1
        elif text[self._at] == "#":
            end = text.find("\n", self._at)
            self._at = len(text) if end < 0 else end
        return self._at > start

    def _redirect(self) -> re.Match[str] | None:
        if PLACEHOLDER.match(self._text, self._at):
            return None
        return _REDIRECT.match(self._text, self._at)

    def _read_heredocs(self) -> None:
        """Take the bodies that follow this line."""
        for command, mark, expands in self._pending:
            end = re.compile(rf"^[ \t]*{re.escape(mark)}[ \t]*$", re.MULTILINE).search(
                self._text, self._at
            )
            stop = len(self._text) if end is None else end.start()
            body = self._text[self._at : stop]
            command.heredocs.append(_ESCAPED.sub(r"\1", body) if expands else body)
            self._at = len(self._text) if end is None else end.end()
        self._pending.clear()

    def _word(self) -> Word:
        pieces: list[Piece] = []
        bare: list[str] = []

        def flush() -> None:
            if bare:
                pieces.append(Piece("".join(bare), expands=True, quoted=False))
                bare.clear()

        text = self._text
        while self._at < len(text):
            character = text[self._at]
            if placeholder := PLACEHOLDER.match(text, self._at):
                bare.append(placeholder[0])
                self._at = placeholder.end()
            elif character == "(" and self._begins_array(bare) and not pieces:
                flush()
                return Word(tuple(pieces), tuple(self._array()))
            elif character in " \t\n;|()<>&":
                break
            elif character in "'\"" and (closing := self._closing(character)) > 0:
                flush()
                pieces += self._quoted(character, closing)
            elif character == "\\" and self._at + 1 < len(text):
                flush()
                if text[self._at + 1] != "\n":
                    pieces.append(Piece(text[self._at + 1], expands=False, quoted=True))
                self._at += 2
            elif taken := self._bracketed():
                bare.append(taken)
            else:
                bare.append(character)
                self._at += 1
        flush()
        if not pieces and self._at < len(text):
            self._at += 1
        return Word(tuple(pieces))

    def _begins_array(self, bare: list[str]) -> bool:
        """``NAME=(``; there are no arrays in arrays."""
        return bool(bare) and bare[-1].endswith("=") and not self._in_array

    def _array(self) -> Iterator[Word]:
        self._at += 1
        self._in_array = True
        while self._at < len(self._text) and self._text[self._at] != ")":
            if self._text[self._at] == "\n":
                self._at += 1
            elif not self._skip_blank():
                yield self._word()
        self._in_array = False
        self._at += 1

    def _closing(self, quote: str) -> int:
        """Where the quote that opens here is closed; 0 if it never is."""
        at = self._at + 1
        while at < len(self._text):
            if quote == '"' and self._text[at] == "\\":
                at += 1
            elif self._text[at] == quote:
                return at
            at += 1
        return 0

    def _quoted(self, quote: str, closing: int) -> Iterator[Piece]:
        inside = self._text[self._at + 1 : closing]
        self._at = closing + 1
        if quote == "'":
            yield Piece(inside, expands=False, quoted=True)
            return
        inside = inside.replace("\\\n", "")
        for part in re.split(r"(\\[\\$\"`])", inside):
            escaped = len(part) == 2 and part[0] == "\\" and part[1] in '\\$"`'
            yield Piece(part[1:] if escaped else part, expands=not escaped, quoted=True)

    def _bracketed(self) -> str:
        """``$(…)``, ``${…}``, ``{{…}}`` or backticks whole with the blanks in them; or nothing."""
        text = self._text
        if self._unclosed > MAX_UNCLOSED:
            return ""
        for opening, closing in (("$(", ")"), ("${", "}"), ("{{", "}}")):
            if text.startswith(opening, self._at):
                end = _balanced(text, self._at, opening[-1], closing)
                break
        else:
            if text[self._at] != "`":
                return ""
            end = text.find("`", self._at + 1) + 1
        if end <= 0:
            self._unclosed += 1
            return ""
        taken = text[self._at : end]
        self._at = end
        return taken


def _balanced(text: str, start: int, opening: str, closing: str) -> int:
    """The position behind the bracket that closes the one at ``start``; 0 if none does."""
    if closing == "}}":
        end = text.find("}}", start)
        return end + 2 if end >= 0 else 0
    depth = 0
    for at in range(start, len(text)):
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if depth == 0:
                return at + 1
    return 0
