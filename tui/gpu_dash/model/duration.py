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
