"""Numbers as words, in the report and in what the commands print of a session."""

from __future__ import annotations

NOT_OFFERED = "–"


def clock(seconds: float) -> str:
    """A place on the session's time line: ``0:07``, ``12:30``, ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands set apart."""
    return NOT_OFFERED if value is None else f"{value:,.{digits}f}"


def latency(seconds: float | None) -> str:
    """A latency: ``12.3 ms``, ``120 ms``, ``1.24 s``."""
    if seconds is None:
        return NOT_OFFERED
    if seconds < 0.0995:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{seconds:.2f} s"


def short(value: float) -> str:
    """A number beside an axis: ``0``, ``0.05``, ``250``, ``2.5k``."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):.4g}{unit}"
    return f"{value:.4g}"


def size(count: float) -> str:
    """Bytes: ``912 B``, ``1.4 MB``."""
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count:.0f} B"
