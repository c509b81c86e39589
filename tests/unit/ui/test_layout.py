"""Whatever the terminal and the number of cards: every part has its place."""

from __future__ import annotations

from itertools import product

import pytest

from gpu_dash.ui.render.layout import (
    LOG_MIN,
    MIN_HEIGHT,
    MIN_WIDTH,
    Zoom,
    plan_layout,
    split_charts,
)

SIZES = [(60, 16), (80, 24), (81, 25), (100, 30), (120, 40), (160, 48), (200, 50), (300, 90)]
CARDS = [0, 1, 2, 4, 8, 9, 16]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_rows_fill_the_screen_and_every_card_has_one(size: tuple[int, int]) -> None:
    for cards, replay, zoom in product(CARDS, (False, True), Zoom):
        layout = plan_layout(*size, cards, replay=replay, zoom=zoom)

        assert layout is not None
        assert layout.height == size[1]
        assert (layout.gpus - layout.gpu_titles) * layout.gpu_columns >= cards
        assert layout.log >= LOG_MIN
        assert layout.play == replay


@pytest.mark.parametrize(("width", "height"), [(59, 24), (80, 15), (20, 5), (1, 1)])
def test_too_small(width: int, height: int) -> None:
    assert plan_layout(width, height, 2) is None


def test_the_smallest_is_large_enough() -> None:
    assert plan_layout(MIN_WIDTH, MIN_HEIGHT, 16) is not None


@pytest.mark.parametrize(("cards", "columns"), [(1, 1), (8, 1), (9, 2), (16, 2)])
def test_more_than_eight_cards_stand_side_by_side(cards: int, columns: int) -> None:
    layout = plan_layout(80, 24, cards)

    assert layout is not None
    assert layout.gpu_columns == columns


def test_the_steps_table_has_room_however_few_cards_there_are() -> None:
    layout = plan_layout(160, 48, 1)

    assert layout is not None
    assert layout.steps_width > 0
    assert layout.gpus >= 6


def test_zoom_moves_rows_between_log_and_charts() -> None:
    both, log, charts = (plan_layout(100, 30, 8, zoom=zoom) for zoom in Zoom)

    assert both is not None
    assert log is not None
    assert charts is not None
    assert log.charts == 0
    assert log.log > both.log > charts.log >= LOG_MIN
    assert charts.charts > both.charts


@pytest.mark.parametrize(
    ("rows", "heights", "axis"),
    [
        (3, [2], 1),
        (5, [2, 2], 1),
        (7, [2, 2, 2], 1),
        (11, [3, 3, 3], 2),
        (24, [6, 5, 5, 5], 3),
        (30, [6, 6, 5, 5, 5], 3),
    ],
)
def test_charts_share_their_rows(rows: int, heights: list[int], axis: int) -> None:
    assert split_charts(rows) == (heights, axis)


def test_charts_use_all_rows() -> None:
    for rows in range(3, 80):
        heights, axis = split_charts(rows)

        assert sum(heights) + axis == rows
        assert min(heights) >= 2


@pytest.mark.parametrize(
    ("size", "rows"), [((60, 16), 2), ((80, 24), 3), ((100, 30), 3), ((160, 48), 7)]
)
def test_without_cards_there_is_room_for_the_reason(size: tuple[int, int], rows: int) -> None:
    layout = plan_layout(*size, 0)

    assert layout is not None
    assert layout.gpus == rows
    assert layout.height == size[1]
