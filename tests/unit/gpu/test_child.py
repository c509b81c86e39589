"""How a sampler ended, in words."""

from __future__ import annotations

import pytest

from gpu_dash.gpu.child import describe_end


@pytest.mark.parametrize(
    ("returncode", "last_words", "parts"),
    [
        (-11, b"", ["by signal 11 (SIGSEGV)", "driver call crashed"]),
        (-6, b"terminate called", ["by signal 6 (SIGABRT)", "library gave up"]),
        (-9, b"", ["by signal 9 (SIGKILL)", "memory"]),
        (-15, b"", ["by signal 15 (SIGTERM)"]),
        (-63, b"", ["by signal 63"]),
        (1, b"Traceback\n  ...\nValueError: no\n", ["with exit code 1: ValueError: no"]),
        (1, b"\x1b[31mred\x1b[0m \xff\n", ["with exit code 1: red \ufffd"]),
        (0, b"", ["with exit code 0"]),
    ],
)
def test_an_end_is_described(returncode: int, last_words: bytes, parts: list[str]) -> None:
    words = describe_end(returncode, last_words)
    for part in parts:
        assert part in words
    assert "\x1b" not in words
