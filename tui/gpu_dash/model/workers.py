"""The workers of a server by their ranks, and the cards that they work on.

vLLM lays its ranks out as data x pipeline x tensor parallel, the last one fastest (``all_ranks``
in its ``parallel_state``), and on one host the N-th worker takes the N-th visible card.
"""

from __future__ import annotations

import re

import msgspec

_PLACE = re.compile(r"(DP|PP|TP)(\d+)")


class Parallel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a server spreads over its cards."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1

    @property
    def world(self) -> int:
        """How many workers there are."""
        return self.tensor * self.pipeline * self.data

    def worker_name(self, rank: int) -> str:
        """A worker as vLLM names it, without the sizes that are one: ``TP1``, ``PP0 TP1``."""
        place, tensor = divmod(rank, self.tensor)
        data, pipeline = divmod(place, self.pipeline)
        parts = [f"DP{data}"] * (self.data > 1) + [f"PP{pipeline}"] * (self.pipeline > 1)
        return " ".join([*parts, *([f"TP{tensor}"] if self.tensor > 1 or not parts else [])])

    def rank_of(self, name: str) -> int | None:
        """The place among all workers that a name such as ``Worker_PP1_TP0`` says.

        Returns:
            ``None`` if it leaves out what is needed.
        """
        said = {kind: int(number) for kind, number in _PLACE.findall(name)}
        sizes = (("DP", self.data), ("PP", self.pipeline), ("TP", self.tensor))
        rank = 0
        for kind, size in sizes:
            at = said.get(kind, 0 if size == 1 else size)
            if at >= size:
                return None
            rank = rank * size + at
        return rank if said else None
