"""When no card at all answers any more. Pure."""

from __future__ import annotations

SILENT_S = 1.0
"""When no card has answered for this long, the source is gone."""


class Silence:
    """How long it has been since any card answered.

    Args:
        at: moment at which the source was opened.
    """

    def __init__(self, at: float) -> None:
        self._answered_at = at

    def is_too_long(self, at: float, *, answered: bool) -> bool:
        """Whether the source is to be given up.

        Args:
            at: moment of a sweep.
            answered: at least one card has answered in it.
        """
        if answered:
            self._answered_at = at
        return at - self._answered_at >= SILENT_S
