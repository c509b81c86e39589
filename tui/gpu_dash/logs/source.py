"""Where the bytes of a log come from: a file that grows, is cut, is replaced or is not there yet.

A journal or a container's output is another :class:`ByteSource`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes in their order."""

    data: bytes
    restarted: str = ""
    """Why these bytes do not continue the ones before, in words; empty when they do."""


class ByteSource(Protocol):
    """Something that yields the bytes of a log. Called from one thread."""

    def read(self, limit: int) -> Piece:
        """Up to ``limit`` bytes that follow the last ones; empty when there are none now.

        Raises:
            OSError: it cannot be read now; a later call may succeed.
        """
        ...

    def backlog_bytes(self) -> int:
        """How many bytes there are now that have not been read."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...


class FileSource:
    """A file followed by its name.

    Cut to a shorter length, it is read again from its start; replaced by another file of that
    name, the old one is read to its end first. A file that was cut and has already grown past
    the place where reading stood is not told from one that only grew.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self._offset = offset
        self._fd: int | None = None

    def read(self, limit: int) -> Piece:
        restarted = ""
        if self._fd is None:
            try:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return Piece(b"")
        data = os.pread(self._fd, limit, self._offset)
        if not data and (restarted := self._restart_reason()):
            data = os.pread(self._fd, limit, self._offset)
        self._offset += len(data)
        return Piece(data, restarted)

    def backlog_bytes(self) -> int:
        if self._fd is None:
            return 0
        return max(0, os.fstat(self._fd).st_size - self._offset)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _restart_reason(self) -> str:
        """At the end of the file: whether to begin again, and if so, stand at the beginning."""
        assert self._fd is not None
        held = os.fstat(self._fd)
        if held.st_size < self._offset:
            self._offset = 0
            return f"{self._path} was cut; reading it again from its start"
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return ""
        if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino):
            return ""
        if os.fstat(self._fd).st_size > self._offset:
            return ""  # written between the reading and the look at the name
        os.close(self._fd)
        self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        self._offset = 0
        return f"{self._path} was replaced by another file; reading the new one"
