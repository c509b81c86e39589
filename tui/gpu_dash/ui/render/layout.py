"""How many rows each part of the screen gets.

Every card and every state is always visible; what is left goes to the charts and the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MIN_WIDTH = 60
MIN_HEIGHT = 16
CARDS_PER_COLUMN = 8
NARROWEST_CARD = 29
"""Cells of the shortest form of a card's line."""
CARD_GAP = 1
LOG_MIN = 3
CHART_MIN = 2
CHARTS_MAX = 5
STEPS_WIDTH = 54
_STEPS_FROM_WIDTH = 150
_STEPS_MIN = 6
"""Steps that have room beside the cards, however few cards there are."""

_NO_CARDS_ROWS = 2
"""Room for why there are no cards, and what to do."""


class Zoom(StrEnum):
    """What the free rows go to."""

    BOTH = "both"
    LOG = "log"
    CHARTS = "charts"


@dataclass(frozen=True)
class Layout:
    """Rows of each part, from the top to the bottom; 0 hides it.

    Attributes:
        gpu_columns: cards side by side.
        steps_width: cells right of the cards for the table of finished steps.
    """

    header: int
    load: int
    gpus: int
    charts: int
    log: int
    play: int
    notice: int
    keys: int
    gpu_columns: int
    gpu_titles: bool
    steps_width: int

    @property
    def height(self) -> int:
        """All rows."""
        return (
            self.header
            + self.load
            + self.gpus
            + self.charts
            + self.log
            + self.play
            + self.notice
            + self.keys
        )


def plan_layout(
    width: int, height: int, cards: int, *, replay: bool = False, zoom: Zoom = Zoom.BOTH
) -> Layout | None:
    """The rows for a terminal of this size; ``None`` when it is too small."""
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        return None
    columns = _card_columns(width, cards)
    steps_width = STEPS_WIDTH if columns == 1 and width >= _STEPS_FROM_WIDTH else 0
    card_rows = -(-cards // columns) if cards else _NO_CARDS_ROWS
    if steps_width:
        card_rows = max(_STEPS_MIN, card_rows)
    titles = height >= 20
    load = 2 if height >= 20 else 1
    play = 1 if replay else 0
    notice = 2 if height >= 36 else 1
    fixed = 1 + load + card_rows + titles + play + notice + 1
    free = max(0, height - fixed)
    log = _log_rows(free, zoom)
    charts = free - log
    return Layout(
        header=1,
        load=load,
        gpus=card_rows + titles,
        charts=charts,
        log=log,
        play=play,
        notice=notice,
        keys=1,
        gpu_columns=columns,
        gpu_titles=titles,
        steps_width=steps_width,
    )


def _card_columns(width: int, cards: int) -> int:
    fits = max(1, (width + CARD_GAP) // (NARROWEST_CARD + CARD_GAP))
    return min(fits, max(1, -(-cards // CARDS_PER_COLUMN)))


def _log_rows(free: int, zoom: Zoom) -> int:
    smallest_charts = CHART_MIN + 1
    if zoom is Zoom.LOG or free < LOG_MIN + smallest_charts:
        return free
    if zoom is Zoom.CHARTS:
        return LOG_MIN
    return max(LOG_MIN, round(free * 0.3))


def split_charts(rows: int) -> tuple[list[int], int]:
    """Heights of the charts, and rows of the marks and times below them.

    Three charts (throughput, TTFT, temperature) as soon as each can have two rows; a fourth and
    fifth (clock, power) when all can have five.
    """
    axis = 1 if rows < 10 else 2 if rows < 15 else 3
    room = rows - axis
    charts = 1 if room < 4 else 2 if room < 6 else 3
    while charts < CHARTS_MAX and room // (charts + 1) >= 5:
        charts += 1
    each, extra = divmod(room, charts)
    return [each + (1 if index < extra else 0) for index in range(charts)], axis
