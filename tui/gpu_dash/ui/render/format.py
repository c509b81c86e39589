"""Numbers for the eye: the one place where units are converted."""

from __future__ import annotations

GIB = 1024**3


def duration(seconds: float) -> str:
    """A span of time, two units at most: ``9s``, ``3m12s``, ``1h04m``, ``2d03h``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def ago(seconds: float) -> str:
    """How old something is: ``12s ago``."""
    return f"{duration(seconds)} ago"


def clock(seconds: float) -> str:
    """A place on a session's time line: ``0:07``, ``12:30``, ``1:02:03``."""
    whole = int(seconds)
    sign, whole = ("-", -whole) if whole < 0 else ("", whole)
    if whole < 3600:
        return f"{sign}{whole // 60}:{whole % 60:02d}"
    return f"{sign}{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def latency(seconds: float | None) -> str:
    """A latency: ``0.4 ms``, ``120 ms``, ``1.24 s``, ``75 s``."""
    if seconds is None:
        return "–"
    if seconds < 0.0095:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.0f} s"


def count(number: float | None) -> str:
    """A count or rate with thousands: ``1,830``; a rate under 10 keeps one digit."""
    if number is None:
        return "–"
    if 0 < abs(number) < 9.95 and number != int(number):
        return f"{number:.1f}"
    return f"{number:,.0f}"


def short(number: float) -> str:
    """A number of a scale in at most five characters: ``0``, ``0.05``, ``250``, ``2.5k``."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def whole(number: float | None, unit: str = "") -> str:
    """A reading without decimals; a dash where the card does not offer it."""
    return "–" if number is None else f"{number:.0f}{unit}"


def pair(value: float | None, limit: float | None, unit: str = "") -> str:
    """A reading and what it is measured against: ``612/700W``."""
    if limit is None:
        return whole(value, unit)
    return f"{whole(value)}/{limit:.0f}{unit}"


def gib(size_bytes: float | None) -> float | None:
    """Bytes as GiB."""
    return None if size_bytes is None else size_bytes / GIB


def percent(fraction: float | None) -> str:
    """A fraction as percent."""
    return "–" if fraction is None else f"{fraction * 100:.0f}%"
