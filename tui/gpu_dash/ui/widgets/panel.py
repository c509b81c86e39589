"""A part of the screen made by a pure function of the view."""

from __future__ import annotations

from collections.abc import Callable

from gpu_dash.ui.render.row import Row
from gpu_dash.ui.view import View
from gpu_dash.ui.widgets.painted import Painted

Build = Callable[[View, int, int], list[Row]]
"""Rows for a width and a height."""


class Panel(Painted):
    """Draws what ``build`` makes of the view, in the rows that the layout gives it.

    Args:
        build: makes the rows.
        stays_live: its text is not greyed when the agent is gone.
    """

    def __init__(self, build: Build, *, id: str, stays_live: bool = False) -> None:
        super().__init__(id=id)
        self._build = build
        self._stays_live = stays_live
        self._height = -1

    def place(self, height: int) -> None:
        """Take this many rows; none hides the panel."""
        if height == self._height:
            return
        self._height = height
        self.display = height > 0
        self.styles.height = height

    def show(self, view: View, width: int) -> None:
        """Draw."""
        if self._height <= 0 or width <= 0:
            return
        rows = self._build(view, width, self._height)[: self._height]
        if view.is_lost and not self._stays_live:
            rows = [row.dimmed() for row in rows]
        rows += [Row().fit(width) for _ in range(self._height - len(rows))]
        self.paint(rows)
