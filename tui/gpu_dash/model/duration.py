"""Durations as people write them: ``5s``, ``500ms``, ``2m``, ``1h``."""

from __future__ import annotations

import re

from gpu_dash.model.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*$")


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``5s``, ``500ms``, ``2m``.

    Raises:
        UsageError: the text is no number with one of the units ms, s, m, h.
    """
    match = _DURATION.match(text)
    if match is None:
        raise UsageError(f"{text!r} is not a duration; write 500ms, 5s, 2m or 1h")
    return float(match[1]) * _UNITS[match[2]]


def format_duration(seconds: float) -> str:
    """The shortest text that :func:`parse_duration` reads as the same number of seconds."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    for unit, size in (("h", 3600.0), ("m", 60.0)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
