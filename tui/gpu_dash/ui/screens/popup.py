"""A box of text over the dashboard, which goes on behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.widgets.painted import Painted

TextRows = Callable[[int], list[Row]]
"""Rows for a width."""


class Popup(ModalScreen[None]):
    """Shows rows in a box that scrolls; any of the closing keys closes it.

    Args:
        title: in the upper edge.
        rows: makes the rows for a width.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark", "dismiss", show=False),
    ]

    def __init__(self, title: str, rows: TextRows) -> None:
        super().__init__()
        self._title = title
        self._rows = rows

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box"):
            yield Painted(id="text")

    def on_mount(self) -> None:
        box = self.query_one("#box")
        box.border_title = Row([(self._title, Role.PLAIN)]).text.replace("[", "(")
        box.border_subtitle = "Esc closes"
        self._fill()

    def on_resize(self) -> None:
        self._fill()

    def _fill(self) -> None:
        width = max(20, min(self.size.width - 8, 110))
        text = self.query_one("#text", Painted)
        rows = [row.fit(width) for row in self._rows(width)]
        text.styles.width = width
        text.styles.height = len(rows)
        text.paint(rows)
