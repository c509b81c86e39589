"""A widget that holds rows and repaints only the part of them that changed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.theme import styles_for


class Painted(Widget):
    """Rows of text. :meth:`paint` is cheap when nothing or little changed."""

    DEFAULT_CSS = "Painted { width: 1fr; height: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[Row] = []
        self._strips: list[Strip] = []
        self._styles: dict[Role, Style] = {}

    @property
    def rows(self) -> Sequence[Row]:
        """What is on the screen now."""
        return self._rows

    def paint(self, rows: list[Row]) -> None:
        """Show these rows."""
        before = self._rows
        strips = self._strips
        if len(before) != len(rows):
            self._rows, self._strips = rows, [self._strip(row) for row in rows]
            self.refresh()
            return
        dirty = []
        for y, (old, new) in enumerate(zip(before, rows, strict=True)):
            if old != new:
                strips[y] = self._strip(new)
                first, last = changed_span(old, new)
                dirty.append(Region(first, y, max(1, last - first), 1))
        self._rows = rows
        if dirty:
            self.refresh(*dirty)

    def paint_filled(self, rows: list[Row]) -> None:
        """Show these rows, and blank ones below them down to the widget's end."""
        width, height = self.size
        rows = rows[:height]
        rows += [Row().fit(width) for _ in range(height - len(rows))]
        self.paint(rows)

    def render_line(self, y: int) -> Strip:
        """A row as it is to be drawn."""
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, self.rich_style)

    def _strip(self, row: Row) -> Strip:
        if not self._styles:
            app = self.app
            self._styles = styles_for(no_color=app.no_color, color_system=app.console.color_system)
        styles = self._styles
        return Strip([Segment(text, styles[role]) for text, role in row], row.width)


def changed_span(old: Row, new: Row) -> tuple[int, int]:
    """The columns from the first to behind the last that differ; the whole row when its cells
    are not one column each."""
    if old.width != new.width or len(old.text) != old.width or len(new.text) != new.width:
        return 0, max(old.width, new.width)
    before = [(character, role) for text, role in old for character in text]
    after = [(character, role) for text, role in new for character in text]
    first = next(x for x, (a, b) in enumerate(zip(before, after, strict=True)) if a != b)
    last = next(x for x in range(len(after) - 1, -1, -1) if before[x] != after[x])
    return first, last + 1
