"""Bytes cut into lines: the same however they arrive, and in constant memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from gpu_dash.logs.lines import LINE_BYTES, LineAssembler


def assembled(pieces: list[bytes]) -> tuple[list[str], str]:
    assembler = LineAssembler()
    lines = [line for piece in pieces for line in assembler.feed(piece)]
    return lines, assembler.open_text()


@pytest.mark.parametrize(
    ("data", "lines", "rest"),
    [
        (b"", [], ""),
        (b"a\nb\n", ["a", "b"], ""),
        (b"a\n\n\nb", ["a", "", "", "b"][:3], "b"),
        (b"a\r\nb\r\r\n", ["a", "b"], ""),
        (b"bar 1%\rbar 2%\rbar 3%\n", ["bar 1%\rbar 2%\rbar 3%"], ""),
        (b"\rbar 1%\rbar 2%", [], "\rbar 1%\rbar 2%"),
        ("█▌\n".encode(), ["█▌"], ""),
        (b"\xff\xfe bad \xe2\x96\n", ["\ufffd\ufffd bad \ufffd"], ""),
    ],
)
def test_lines(data: bytes, lines: list[str], rest: str) -> None:
    assert assembled([data]) == (lines, rest)


def test_the_result_does_not_depend_on_the_pieces() -> None:
    chance = random.Random(7)
    words = [
        b"INFO ok",
        b"\r",
        b"\n",
        b"\r\n",
        "█".encode(),
        b"\xff",
        b"\xe2\x96",
        b"x" * (LINE_BYTES - 3),
        b"y" * LINE_BYTES,
        b"\t",
    ]
    for _ in range(150):
        data = b"".join(chance.choices(words, k=chance.randrange(1, 30)))
        cuts = sorted(chance.choices(range(len(data) + 1), k=6))
        pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]

        assert assembled(pieces) == assembled([data])


def test_byte_by_byte_is_the_same_as_at_once() -> None:
    data = "a\r\nbar 1%\r█ 2%\r\n\n\r\nend".encode()

    assert assembled([data[i : i + 1] for i in range(len(data))]) == assembled([data])


def test_of_an_endless_line_the_head_is_kept_in_constant_memory() -> None:
    assembler = LineAssembler()
    piece = b"z" * 65536
    assembler.feed(b"head ")
    tracemalloc.start()
    for _ in range(160):
        assert assembler.feed(piece) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    (line,) = assembler.feed(b"\n")
    assert line == "head " + "z" * (LINE_BYTES - 5)
    assert assembler.whole_bytes == 5 + 160 * 65536 + 1
    assert peak < 4 * 65536


def test_of_an_endless_progress_bar_the_newest_state_is_kept() -> None:
    assembler = LineAssembler()
    for percent in range(3000):
        assembler.feed(b"\rdownloading: %d" % percent)

    assert assembler.open_text().endswith("\rdownloading: 2999")
    assert len(assembler.open_text()) < 2 * LINE_BYTES
    (line,) = assembler.feed(b"\r\n")
    assert line.endswith("\rdownloading: 2999")


@pytest.mark.parametrize(
    "pieces",
    [
        [b"h" * (LINE_BYTES - 1) + b"\r", b"new state"],
        [b"h" * LINE_BYTES + b"\r", b"new state"],
        [b"h" * LINE_BYTES + b"tail\r", b"new state"],
        [b"h" * LINE_BYTES + b"tail\rnew", b" state"],
        [b"h" * LINE_BYTES + b"tail\r", b"\r", b"new state"],
    ],
)
def test_a_state_that_begins_with_another_piece(pieces: list[bytes]) -> None:
    _, text = assembled(pieces)

    assert text.rpartition("\r")[2] == "new state"


def test_another_file_ends_the_open_line() -> None:
    assembler = LineAssembler()
    assembler.feed(b"whole\ncut off")

    assert assembler.restart() == ["cut off"]
    assert not assembler.has_open_line
    assert assembler.whole_bytes == 0
    assert assembler.feed(b"new\n") == ["new"]
