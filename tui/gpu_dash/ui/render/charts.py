"""The charts above each other, and under them the marks, all on one time axis."""

from __future__ import annotations

from gpu_dash.ui.render.braille import draw
from gpu_dash.ui.render.card_charts import SM_CLOCK, TEMPERATURE, CardLinesPlot, PowerPlot
from gpu_dash.ui.render.chart import SCALE_WIDTH, Plot, drawn
from gpu_dash.ui.render.lanes import lanes
from gpu_dash.ui.render.layout import split_charts
from gpu_dash.ui.render.load_charts import FirstTokenPlot, ThroughputPlot
from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.render.timeaxis import TimeAxis
from gpu_dash.ui.view import View


class Charts:
    """All charts of the dashboard; each keeps what it gathered for the page of the axis."""

    def __init__(self) -> None:
        throughput, temperature = ThroughputPlot(), CardLinesPlot(TEMPERATURE)
        self._plots: list[Plot] = [
            throughput,
            FirstTokenPlot(),
            temperature,
            CardLinesPlot(SM_CLOCK),
            PowerPlot(),
        ]
        self._most_needed: list[Plot] = [throughput, temperature]

    def rows(self, view: View, width: int, height: int) -> list[Row]:
        """The panel."""
        heights, axis_rows = split_charts(height)
        axis = TimeAxis.around(
            view.now,
            view.window_s,
            width - SCALE_WIDTH - (13 if width < 100 else 16),
            origin=view.origin,
            earliest=_earliest(view),
        )
        step_cells = {axis.cell(mark.opened_at) for mark in view.store.step_marks}
        plots = self._plots if len(heights) > len(self._most_needed) else self._most_needed
        rows: list[Row] = []
        for plot, its_height in zip(plots, heights, strict=False):
            chart = plot.chart(view, axis, its_height)
            rows += drawn(chart, axis, step_cells, its_height, width)
        for label, cells in lanes(view, axis, axis_rows):
            row = Row([(label.rjust(SCALE_WIDTH - 1) + " ", Role.DIM)])
            row.extend(draw([], 0, cells))
            if axis_rows == 1:
                row.add(f" {axis.span_text()}", Role.DIM)
            rows.append(row.fit(width))
        return rows


def _earliest(view: View) -> float:
    """Where the data begin."""
    store = view.store
    firsts = [track.history[0].at for track in store.gpus.values() if track.history]
    firsts += [point.at for point in store.load_history[:1]]
    firsts += [point.at for point in store.server_history[:1]]
    return min(firsts, default=view.now)
