"""What others write must neither steer the terminal nor break a line."""

from __future__ import annotations

import time

import pytest

from gpu_dash.model.text import one_line, strip_controls

HOSTILE = [
    ("plain", "plain"),
    ("", ""),
    ("a\tb", "a\tb"),
    ("Größe 温度 ✓ 👍", "Größe 温度 ✓ 👍"),
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b[38;5;196mred\x1b[0;0m", "red"),
    ("\x1b[38:2::255:0:0mred", "red"),
    ("\x1b[?1049h\x1b[2J\x1b[Hscreen", "screen"),
    ("\x1b]0;title\x07after", "after"),
    ("\x1b]8;;http://example.invalid\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1b]52;c;c2VjcmV0\x07after", "after"),
    ("\x1bPq#0;2;0;0;0\x1b\\after", "after"),
    ("\x1b(Bafter\x1b7\x1b8\x1bc", "after"),
    ("\x9b31mred\x9b0m", "red"),
    ("\x9d0;title\x9cafter", "after"),
    ("a\x00b\x08c\x7fd\x85e", "abcde"),
    ("progress\r", "progress"),
    ("\x1b", ""),
    ("\x1b[", ""),
    ("cut \x1b[31", "cut 31"),
    ("cut \x1b]0;title", "cut 0;title"),
    ("\x1b\x1b[31m[31mnested", "[31mnested"),
    ("\x1b[\x1b[31m31mnested", "31mnested"),
    ("access \u202eevil\u202c", "access evil"),
    ("\u2066isolate\u2069\u200f", "isolate"),
    ("half \udc80", "half \ufffd"),
]


@pytest.mark.parametrize(("text", "expected"), HOSTILE)
def test_a_line_keeps_its_words_and_loses_what_a_terminal_obeys(text: str, expected: str) -> None:
    assert strip_controls(text) == expected


@pytest.mark.parametrize("text", [text for text, _ in HOSTILE])
def test_nothing_is_left_to_strip(text: str) -> None:
    once = strip_controls(text)
    assert strip_controls(once) == once
    assert not any(ord(sign) < 32 and sign != "\t" for sign in once)
    assert "\x1b" not in once
    once.encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo", "one ⏎ two"),
        ("one\r\ntwo\r\n", "one ⏎ two"),
        ("one\x0btwo\u2028three", "one ⏎ two ⏎ three"),
        ("\x1b[31mone\x1b[0m\ntwo", "one ⏎ two"),
        ("one", "one"),
    ],
)
def test_several_lines_become_one(text: str, expected: str) -> None:
    assert one_line(text) == expected
    assert len(one_line(text).splitlines()) == 1


def test_a_long_hostile_line_takes_linear_time() -> None:
    text = "".join(f"{head}x" * 100_000 for head in ("\x1b]", "\x1b[", "\x1bP", "\x90", "\x9b0"))
    began = time.perf_counter()
    assert "\x1b" not in strip_controls(text)
    assert time.perf_counter() - began < 2
