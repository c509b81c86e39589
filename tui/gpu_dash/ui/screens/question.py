"""A question that is answered with y or n."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.widgets.painted import Painted


class Question(ModalScreen[bool]):
    """Asks before something that cannot be taken back; anything but ``y`` is no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape,q,enter", "answer(False)", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Painted(id="text")

    def on_mount(self) -> None:
        row = Row([(self._question, Role.STRONG), ("  ", Role.PLAIN)])
        row.add("y", Role.KEY).add(" yes  ", Role.DIM).add("n", Role.KEY).add(" no", Role.DIM)
        text = self.query_one("#text", Painted)
        width = min(row.width, self.size.width - 8)
        text.styles.width = width
        text.paint([row.fit(width)])

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)
