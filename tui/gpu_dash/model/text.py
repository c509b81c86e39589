"""Text from outside, made safe for a terminal and for a line of a file.

Log lines, device and model names and error bodies are written by others. A terminal would obey
the control sequences in them, and a right-to-left override makes a line read as what it is not.
"""

from __future__ import annotations

import re

_SEQUENCES = re.compile(
    # OSC, DCS, SOS, PM and APC: a string up to BEL or ST. It ends before the next
    # introducer, so that a line full of them costs linear time
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
    # CSI: parameters, intermediates, one final character
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    # any other escape sequence, and the head of one that never ends
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_LINE_BREAKS = re.compile("\r\n|[\n\r\v\f\x85\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")

LINE_BREAK_SIGN = " ⏎ "
"""Stands where :func:`one_line` found the end of a line."""


def strip_controls(text: str) -> str:
    """One line without anything that a terminal would obey.

    Escape sequences go whole (colours, titles, cursor movement), then every remaining control
    character but the tab, and the marks that change the direction of writing. A half of a
    surrogate pair, which no file takes, becomes U+FFFD. What comes back holds no control
    character, however the sequences were nested or cut.
    """
    if text.isprintable():
        return text
    text = _CONTROLS.sub("", _SEQUENCES.sub("", text))
    return _SURROGATES.sub("\ufffd", text)


def one_line(text: str) -> str:
    """A text of several lines as one, its line breaks shown as ``⏎``, without controls."""
    if text.isprintable():
        return text
    return strip_controls(_LINE_BREAKS.sub(LINE_BREAK_SIGN, text.rstrip("\r\n")))
