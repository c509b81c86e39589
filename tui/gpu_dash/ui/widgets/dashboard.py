"""All parts of the screen, and where each stands."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from gpu_dash.ui.render.charts import Charts
from gpu_dash.ui.render.gpu_table import gpu_rows
from gpu_dash.ui.render.layout import MIN_HEIGHT, MIN_WIDTH, Layout, Zoom, plan_layout
from gpu_dash.ui.render.load_lines import load_rows
from gpu_dash.ui.render.notice_lines import notice_rows
from gpu_dash.ui.render.play_bar import play_rows
from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.render.server_line import server_rows
from gpu_dash.ui.render.steps_table import steps_rows
from gpu_dash.ui.view import View
from gpu_dash.ui.widgets.log_pane import LogPane
from gpu_dash.ui.widgets.painted import Painted
from gpu_dash.ui.widgets.panel import Panel


class Dashboard(Vertical):
    """The panels from the top to the bottom; all show one instant.

    Args:
        key_bar: makes the last line for a view and a width.
    """

    def __init__(self, key_bar: Callable[[View, int], Row]) -> None:
        super().__init__()
        self._layout_now: Layout | None = None
        self._header = Panel(server_rows, id="header", stays_live=True)
        self._load = Panel(load_rows, id="load")
        self._gpus = Panel(self._gpu_rows, id="gpus")
        self._steps = Panel(steps_rows, id="steps")
        self._charts = Panel(Charts().rows, id="charts")
        self.log_pane = LogPane(id="log")
        self._play = Panel(play_rows, id="play")
        self.notice = Panel(notice_rows, id="notice", stays_live=True)
        self._keys = Panel(
            lambda view, width, height: [key_bar(view, width)], id="keys", stays_live=True
        )
        self._too_small = Panel(_too_small_rows, id="too-small", stays_live=True)

    def compose(self) -> ComposeResult:
        yield self._too_small
        yield self._header
        yield self._load
        with Horizontal(id="middle"):
            yield self._gpus
            yield self._steps
        yield self._charts
        yield self.log_pane
        yield self._play
        yield self.notice
        yield self._keys

    def show(self, view: View, zoom: Zoom) -> None:
        """Draw everything for this instant."""
        width, height = self.app.size
        layout = plan_layout(
            width, height, len(view.store.gpus), replay=view.play is not None, zoom=zoom
        )
        self._place(layout, height)
        if layout is None:
            self._too_small.show(view, width)
            return
        self._gpus.show(view, width - layout.steps_width)
        self._steps.show(view, layout.steps_width)
        for panel in (self._header, self._load, self._charts, self._play, self.notice, self._keys):
            panel.show(view, width)
        self.log_pane.show(view)

    @property
    def is_searching(self) -> bool:
        """Whether a text to search is being typed."""
        return bool(self.query("#search"))

    async def open_search(self) -> None:
        """Ask for a text to search, in the place of the notice."""
        prompt = Painted(id="search-sign")
        box = Input(value=self.log_pane.book.text, placeholder="text in the log", id="search-text")
        await self.mount(Horizontal(prompt, box, id="search"), before=self.notice)
        prompt.paint([Row([("/", Role.KEY)])])
        self.notice.display = False
        self.screen.set_focus(box)

    async def close_search(self) -> bool:
        """Give the place back to the notice.

        Returns:
            whether there was one to close.
        """
        search = self.query("#search")
        if not search:
            return False
        await search.remove()
        self.notice.display = True
        self.screen.set_focus(None)
        return True

    def _place(self, layout: Layout | None, height: int) -> None:
        self._too_small.place(0 if layout is not None else max(1, height))
        if layout == self._layout_now and layout is not None:
            return
        self._layout_now = layout
        heights = {
            self._header: layout.header if layout else 0,
            self._load: layout.load if layout else 0,
            self._gpus: layout.gpus if layout else 0,
            self._steps: layout.gpus if layout and layout.steps_width else 0,
            self._charts: layout.charts if layout else 0,
            self._play: layout.play if layout else 0,
            self.notice: layout.notice if layout else 0,
            self._keys: layout.keys if layout else 0,
        }
        for panel, rows in heights.items():
            panel.place(rows)
        self.log_pane.display = layout is not None and layout.log > 0
        if layout is not None:
            self._steps.styles.width = layout.steps_width
            self.log_pane.styles.height = layout.log

    def _gpu_rows(self, view: View, width: int, height: int) -> list[Row]:
        layout = self._layout_now
        assert layout is not None
        return gpu_rows(view, width, height, layout.gpu_columns, titles=layout.gpu_titles)


def _too_small_rows(view: View, width: int, height: int) -> list[Row]:
    """The size that is needed, in words that fit a very small terminal."""
    words = f"gpu-dash needs {MIN_WIDTH}x{MIN_HEIGHT} (q leaves)"
    text = words if len(words) <= width else f"{MIN_WIDTH}x{MIN_HEIGHT} needed"
    return [Row([(text, Role.STRONG)]).fit(width)]
