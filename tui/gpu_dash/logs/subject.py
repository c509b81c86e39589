"""Which card, rank or process a finding is about.

A worker that has no rank in its name yet (before the parallel groups exist) is known by its pid,
from what it said itself earlier.
"""

from __future__ import annotations

import re

from gpu_dash.logs.grammar import Record, place_of

_RANK_TOLD = re.compile(r"\brank=(\d+)|^rank (\d+) in world size")
_NAMED = ("gpu", "rank", "tp", "pci", "node")
MOST_PIDS = 4096


class Ranks:
    """Ranks by pid."""

    def __init__(self) -> None:
        self._rank_of: dict[int, int] = {}

    def learn(self, record: Record) -> None:
        """Take note of a rank that a record tells of its process."""
        if record.pid is None:
            return
        rank = place_of(record.process).rank
        if rank is None and "rank" in record.message:
            told = _RANK_TOLD.search(record.message)
            rank = int(told[1] or told[2]) if told else None
        if rank is not None:
            if len(self._rank_of) >= MOST_PIDS:
                self._rank_of.clear()
            self._rank_of[record.pid] = rank

    def subject(self, record: Record, values: dict[str, str]) -> str:
        """``gpu:2``, ``rank:1``, ``tp:0``, ``pci:0000:3b:00``, ``node:4``, or empty.

        Args:
            record: the line.
            values: what a rule found in its message; that comes first.
        """
        for name in _NAMED:
            if name in values:
                return f"{name}:{values[name].lower()}"
        if "pid" in values:
            return self._by_pid(int(values["pid"]))
        if record.device is not None:
            return f"gpu:{record.device}"
        if record.rank is not None:
            return f"rank:{record.rank}"
        place = place_of(record.process)
        if place.tp is not None:
            return f"tp:{place.tp}"
        if place.rank is not None:
            return f"rank:{place.rank}"
        return self._by_pid(record.pid) if place.is_worker else ""

    def _by_pid(self, pid: int | None) -> str:
        rank = None if pid is None else self._rank_of.get(pid)
        return "" if rank is None else f"rank:{rank}"
