"""Where the faults of the cards are heard, in words."""

from __future__ import annotations

from collections.abc import Sequence


def fault_source_lines(live: Sequence[str], missing: Sequence[str]) -> list[str]:
    """Which sources of XIDs and resets are live, and why the others are not.

    Args:
        live: names of sources.
        missing: a source and its reason each.
    """
    heard = f"XIDs and resets are heard from {', '.join(live)}"
    lines = [heard if live else "XIDs and resets are heard from nowhere"]
    return [*lines, *(f"  not from {reason}" for reason in missing)]
