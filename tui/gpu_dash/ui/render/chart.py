"""One chart: layers of dots between its scale and its words."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from gpu_dash.ui.render.braille import Layer, draw
from gpu_dash.ui.render.lanes import STEP_LINE, Cells
from gpu_dash.ui.render.row import Role, Row, Run
from gpu_dash.ui.render.scale import Scale
from gpu_dash.ui.render.timeaxis import TimeAxis
from gpu_dash.ui.view import View

SCALE_WIDTH = 6
"""Cells left of a chart."""
_LEVEL_LINE = "╌"


@dataclass(frozen=True)
class Chart:
    """A chart, ready to be drawn.

    Attributes:
        scale: what the dots are measured by.
        labels: texts of the scale's top and bottom; empty where there are no data.
        layers: from the back to the front.
        beside: right of it, row by row: a title, then what is now.
        level: a value that is marked across, such as a limit.
    """

    scale: Scale
    labels: tuple[str, str]
    layers: list[Layer]
    beside: list[list[Run]]
    level: float | None = None


class Plot(Protocol):
    """Makes one of the charts, frame after frame."""

    def chart(self, view: View, axis: TimeAxis, height: int) -> Chart:
        """The chart of this instant, in rows of cells."""
        ...


def drawn(
    chart: Chart, axis: TimeAxis, step_cells: Collection[int], height: int, width: int
) -> list[Row]:
    """A chart with its scale at the left and its words at the right.

    Args:
        chart: what to draw.
        axis: the time axis of all charts.
        step_cells: columns in which the window of a step opened.
        height: rows.
        width: cells of the whole row.
    """
    level_row = None
    if chart.level is not None and chart.scale.holds(chart.level):
        level_row = min(height - 1, int((1 - chart.scale.share(chart.level)) * height))
    rows = []
    for y in range(height):
        background: Cells = [(_LEVEL_LINE, Role.DIM) if y == level_row else (" ", Role.PLAIN)]
        background *= axis.width
        for cell in step_cells:
            if 0 <= cell < axis.width:
                background[cell] = (STEP_LINE, Role.DIM)
        label = chart.labels[0] if y == 0 else chart.labels[1] if y == height - 1 else ""
        row = Row([(label.rjust(SCALE_WIDTH - 1) + ("┤" if label else "│"), Role.DIM)])
        row.extend(draw(chart.layers, y, background))
        row.add(" ")
        if y < len(chart.beside):
            row.extend(chart.beside[y])
        rows.append(row.fit(width))
    return rows


def now_and_peak(
    now: float | None,
    peak: float | None,
    text: Callable[[float | None], str],
    role: Role,
    *,
    was_there: bool,
) -> list[list[Run]]:
    """What is now, and the highest on the axis; words where there are no data.

    Args:
        now: the newest value, if it is fresh.
        peak: the highest on the axis; ``None`` when no data are on it.
        text: writes a value.
        role: of what is now.
        was_there: there were data, on the axis or before it.
    """
    if peak is None:
        return [[("none in view" if was_there else "no data yet", Role.DIM)]]
    return [
        [(text(now), role if now is not None else Role.DIM)],
        [(f"peak {text(peak)}", Role.DIM)],
    ]
