"""Bytes of a log, in whatever pieces they arrive, cut into whole lines in constant memory.

The result does not depend on how the bytes were cut. A line of a megabyte keeps its head. A
progress bar is one line whose states follow each other by carriage returns; the states stay in
the line, joined as they came, and of a bar that runs for an hour the first ones and the newest.
"""

from __future__ import annotations

LINE_BYTES = 16 * 1024
"""What is kept of a line, and once more of its newest state: enough for a JSON record with a
traceback in it."""


class LineAssembler:
    """Cuts a byte stream at its line feeds.

    A line may still hold carriage returns between the states of a progress bar; those at its end
    are gone. Bytes that are no UTF-8 become U+FFFD.
    """

    def __init__(self) -> None:
        self._head = bytearray()
        self._state = bytearray()
        """The newest state of an open line that is longer than :data:`LINE_BYTES`."""
        self._has_state = False
        self._returned = False
        """The open line's last byte was a carriage return: a new state follows, or its end."""
        self._whole_bytes = 0
        self._open_bytes = 0

    @property
    def whole_bytes(self) -> int:
        """Bytes up to the end of the last whole line."""
        return self._whole_bytes

    @property
    def has_open_line(self) -> bool:
        """Whether bytes of a line without its line feed are held."""
        return self._open_bytes > 0

    def feed(self, data: bytes) -> list[str]:
        """The lines that became whole with these bytes."""
        end = data.rfind(b"\n")
        if end < 0:
            self._hold(data)
            return []
        lines: list[str] = []
        start = 0
        if self._open_bytes:
            start = data.index(b"\n") + 1
            self._hold(data[: start - 1])
            lines.append(self.open_text())
            self._whole_bytes += self._open_bytes + 1
            self._forget()
        if start <= end:
            lines += _split(data[start : end + 1])
            self._whole_bytes += end + 1 - start
        if end + 1 < len(data):
            self._hold(data[end + 1 :])
        return lines

    def open_text(self) -> str:
        """The line that has no line feed yet, as it would read if it ended here."""
        text = _decode(bytes(self._head))
        if self._has_state:
            text += "\r" + _decode(bytes(self._state))
        return text.rstrip("\r")

    def restart(self) -> list[str]:
        """Begin with another file; what the last one left without a line feed is its last line."""
        lines = [self.open_text()] if self._open_bytes else []
        self._forget()
        self._whole_bytes = 0
        return lines

    def _forget(self) -> None:
        self._head.clear()
        self._state.clear()
        self._returned = self._has_state = False
        self._open_bytes = 0

    def _hold(self, data: bytes) -> None:
        self._open_bytes += len(data)
        room = LINE_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
            self._returned = self._head.endswith(b"\r")
        if not data:
            return
        # From here on only the text behind the last carriage return counts, as far as any
        # follows it.
        body = data.rstrip(b"\r")
        if body:
            last = body.rfind(b"\r")
            if last >= 0 or self._returned:
                self._has_state = True
                self._state.clear()
            if self._has_state:
                self._state += body[last + 1 :][: LINE_BYTES - len(self._state)]
            self._returned = False
        if len(body) < len(data):
            self._returned = True


def _split(block: bytes) -> list[str]:
    """The lines of a block that ends with a line feed."""
    lines = block.replace(b"\r\n", b"\n").split(b"\n")
    lines.pop()
    if max(map(len, lines)) <= LINE_BYTES:
        # One decoding for the whole block; a line feed is never part of another character.
        texts = b"\n".join(lines).decode(errors="replace").split("\n")
        return [text.rstrip("\r") if text.endswith("\r") else text for text in texts]
    return [_shortened(line) for line in lines]


def _shortened(line: bytes) -> str:
    assembler = LineAssembler()
    assembler.feed(line)
    return assembler.open_text()


def _decode(data: bytes) -> str:
    return data.decode(errors="replace")
