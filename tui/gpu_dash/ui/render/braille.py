"""Lines drawn in braille: eight dots a cell.

A layer is one bitmap. The layers of a chart are laid over each other: a cell shows the dots of
all of them in the role of the topmost one that has a dot there.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpu_dash.ui.render.row import SEEN_ON_BLANKS, Role, Row
from gpu_dash.ui.render.scale import Scale

DOTS_ACROSS = 2
DOTS_DOWN = 4
_BLANK = 0x2800
# bit of a dot, by its column and its row counted from the top of the cell
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))

Values = Sequence[float | None]


class Layer:
    """One bitmap of ``width`` by ``height`` cells, drawn in one role."""

    def __init__(self, width: int, height: int, role: Role) -> None:
        self.width = width
        self.height = height
        self.role = role
        self.cells = [bytearray(width) for _ in range(height)]

    def line(self, values: Values, scale: Scale) -> Layer:
        """Draw one value per column of dots; ``None`` breaks the line."""
        before: int | None = None
        for x, value in enumerate(values):
            if value is None:
                before = None
                continue
            level = self._level(value, scale)
            if before is None or before == level:
                self._column(x, level, level)
            elif before < level:
                self._column(x, before + 1, level)
            else:
                self._column(x, level, before - 1)
            before = level
        return self

    def _level(self, value: float, scale: Scale) -> int:
        """Dots above the bottom."""
        top = self.height * DOTS_DOWN - 1
        return min(top, max(0, round(scale.share(value) * top)))

    def _column(self, x: int, bottom: int, top: int) -> None:
        cell, side = divmod(x, DOTS_ACROSS)
        bits = _BITS[side]
        last = self.height * DOTS_DOWN - 1
        for level in range(bottom, top + 1):
            row, dot = divmod(last - level, DOTS_DOWN)
            self.cells[row][cell] |= bits[dot]


def draw(layers: Sequence[Layer], y: int, background: Sequence[tuple[str, Role]]) -> Row:
    """One row of a chart.

    Args:
        layers: from the back to the front, all of one size.
        y: which row of cells.
        background: what stands where no layer has a dot, one character and role a cell.
    """
    row = Row()
    text: list[str] = []
    current = Role.PLAIN
    for x, (character, back_role) in enumerate(background):
        bits = 0
        role = back_role
        for layer in layers:
            dots = layer.cells[y][x]
            if dots:
                bits |= dots
                role = layer.role
        if bits:
            character = chr(_BLANK + bits)
        elif character == " " and current not in SEEN_ON_BLANKS:
            role = current
        if role is not current and text:
            row.add("".join(text), current)
            text.clear()
        current = role
        text.append(character)
    return row.add("".join(text), current)
