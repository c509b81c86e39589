"""Facts by the wording of their keys, which changes from release to release."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from gpu_dash.gpu.saved.card import SavedCard

Pattern = tuple[str, str, Callable[[Any], Any]]
"""Expression of a key in lower case, the fact that it gives, and the reader of its value."""


class Patterns:
    """A table of keys.

    Args:
        table: the preferred wording of a fact first.
        whole: an expression is of the whole key, not only of its beginning.
    """

    def __init__(self, table: Iterable[Pattern], *, whole: bool) -> None:
        self._whole = whole
        self._compiled = tuple((re.compile(regex), name, read) for regex, name, read in table)

    def learn(self, card: SavedCard, key: str, value: Any) -> None:
        """Take what a key says."""
        for regex, name, read in self._compiled:
            if (regex.fullmatch if self._whole else regex.match)(key):
                card.learn(name, read(value))
