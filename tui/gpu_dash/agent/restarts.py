"""Whether a server that failed is started again, and when."""

from __future__ import annotations

STEADY_S = 300.0
"""A server that was ready for so long failed for a new reason: counting begins again."""
LONGEST_DELAY_S = 300.0


class RestartPolicy:
    """Back-off that doubles, and a limit: a server that crashes in a loop is left alone.

    Args:
        limit: how many starts follow a failure before it is given up; 0: none.
        delay_s: before the first of them.
    """

    def __init__(self, limit: int, delay_s: float) -> None:
        self.limit = limit
        self.count = 0
        """Starts that followed the first failure."""
        self._delay_s = delay_s

    def next_delay_s(self, ready_for_s: float) -> float | None:
        """Seconds until the next start; ``None``: it is given up.

        Args:
            ready_for_s: how long the server that failed had been ready.
        """
        if ready_for_s >= STEADY_S:
            self.count = 0
        if self.count >= self.limit:
            return None
        self.count += 1
        delay: float = self._delay_s * 2 ** (self.count - 1)
        return min(delay, LONGEST_DELAY_S)
