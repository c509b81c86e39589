"""Dots stand where the values are."""

from __future__ import annotations

import pytest

from gpu_dash.ui.render.braille import Layer, draw
from gpu_dash.ui.render.row import Role
from gpu_dash.ui.render.scale import Scale

BLANK = (" ", Role.PLAIN)


def text_of(layer: Layer) -> list[str]:
    return [draw([layer], y, [BLANK] * layer.width).text for y in range(layer.height)]


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ([0.0, 0.0], [" ", "⣀"]),
        ([7.0, 7.0], ["⠉", " "]),
        ([0.0, 7.0], ["⢸", "⡸"]),
        ([7.0, 0.0], ["⢱", "⢸"]),
        ([None, 3.0], [" ", "⠈"]),
        ([-5.0, 50.0], ["⢸", "⡸"]),
    ],
)
def test_a_line_joins_its_values(values: list[float | None], rows: list[str]) -> None:
    assert text_of(Layer(1, 2, Role.GOOD).line(values, Scale(0.0, 7.0))) == rows


def test_none_breaks_the_line() -> None:
    layer = Layer(2, 1, Role.GOOD).line([0.0, None, None, 3.0], Scale(0.0, 3.0))

    assert text_of(layer) == ["⡀⠈"]


def test_the_topmost_layer_gives_the_role_and_all_give_dots() -> None:
    back = Layer(2, 1, Role.DIM).line([0.0] * 4, Scale(0.0, 3.0))
    front = Layer(2, 1, Role.ALARM).line([None, None, 3.0, 3.0], Scale(0.0, 3.0))

    row = draw([back, front], 0, [BLANK, BLANK])

    assert row.runs == [("⣀", Role.DIM), ("⣉", Role.ALARM)]


def test_the_background_shows_where_no_dot_is() -> None:
    layer = Layer(3, 1, Role.GOOD).line([0.0, 0.0, None, None, None, None], Scale(0.0, 1.0))

    row = draw([layer], 0, [("┊", Role.DIM), ("┊", Role.DIM), BLANK])

    assert row.text == "⣀┊ "
    assert row.runs[1] == ("┊ ", Role.DIM)
