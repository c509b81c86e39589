"""What a recorder says when its disk takes no more, and when it does again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path


class Trouble:
    """Counts what is lost; says once that rows are lost, and once how many when it is over.

    Args:
        folder: the session's.
        say: takes a sentence for a person.
        settle_s: how long all must have been written before it counts as over.
        rows_lost: what an earlier recorder of the folder lost.
    """

    def __init__(
        self, folder: Path, say: Callable[[str], None], settle_s: float, *, rows_lost: int = 0
    ) -> None:
        self.rows_lost = rows_lost
        self._folder = folder
        self._say = say
        self._settle_s = settle_s
        self._lost: Counter[str] = Counter()
        self._newest_at: float | None = None

    @property
    def goes_on(self) -> bool:
        """Something was lost and it is not yet over."""
        return self._newest_at is not None

    def lost(self, count: int, what: str, reason: str) -> None:
        """Rows could not be written.

        Args:
            count: how many.
            what: of which file.
            reason: in the words of the system; empty if a person was told already.
        """
        if reason and not self.goes_on:
            self._say(f"{self._folder}: {reason}; rows are lost until there is room again")
        self._newest_at = time.monotonic()
        self._lost[what] += count
        self.rows_lost += count

    def flushed(self, *, all_written: bool, is_last: bool) -> None:
        """What waited was written or lost.

        Args:
            all_written: there was something, and all of it was written.
            is_last: there is no later moment to say how it ended.
        """
        if self._newest_at is None:
            return
        is_over = all_written and time.monotonic() - self._newest_at >= self._settle_s
        if not is_over and not is_last:
            return
        lost = ", ".join(f"{count} {what}" for what, count in self._lost.items() if count)
        state = "the recording goes on" if is_over else "the recording ended"
        self._say(f"{self._folder}: {state}; lost: {lost or 'nothing'}")
        self._newest_at = None
        self._lost.clear()
