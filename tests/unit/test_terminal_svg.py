"""A screen drawn as SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pyte
import pytest

from scripts.terminal_svg import (
    CELL_WIDTH,
    block_rectangles,
    box_strokes,
    braille_dots,
    render_svg,
)

SVG = "{http://www.w3.org/2000/svg}"


def drawn(output: str, columns: int = 20, lines: int = 2) -> ElementTree.Element:
    """What a program's output comes to as SVG."""
    screen = pyte.Screen(columns, lines)
    pyte.Stream(screen).feed(output)
    return ElementTree.fromstring(render_svg(screen))


def texts(svg: ElementTree.Element) -> list[str | None]:
    return [text.text for text in svg.iter(f"{SVG}text")]


def test_a_run_of_one_look_is_one_text_of_its_exact_width() -> None:
    svg = drawn("abc \x1b[1;31mde")
    plain, bold = svg.iter(f"{SVG}text")

    assert (plain.text, bold.text) == ("abc", "de")
    assert float(plain.attrib["textLength"]) == pytest.approx(3 * CELL_WIDTH, abs=0.01)
    assert "font-weight" not in plain.attrib
    assert bold.attrib["font-weight"] == "bold"
    assert bold.attrib["fill"] != plain.attrib["fill"]
    assert float(bold.attrib["x"]) - float(plain.attrib["x"]) == pytest.approx(
        4 * CELL_WIDTH, abs=0.01
    )


def test_a_character_of_another_font_cannot_shift_its_neighbours() -> None:
    assert texts(drawn("72 °C")) == ["72", "°", "C"]


def test_foreign_text_stays_text() -> None:
    assert texts(drawn("<b>&amp;")) == ["<b>&amp;"]


def test_colours_of_24_bits_and_reverse() -> None:
    svg = drawn("\x1b[38;2;1;2;3m\x1b[48;2;4;5;6mx\x1b[7my")
    direct, reverse = svg.iter(f"{SVG}text")
    backgrounds = [rect.attrib["fill"] for rect in svg.iter(f"{SVG}rect")][1:]

    assert (direct.attrib["fill"], reverse.attrib["fill"]) == ("#010203", "#040506")
    assert backgrounds == ["#040506", "#010203"]


def test_shapes_of_one_colour_share_a_path_and_need_no_font() -> None:
    svg = drawn("█▁⣿─░")

    assert texts(svg) == []
    assert len(list(svg.iter(f"{SVG}path"))) == 3  # filled, shaded, stroked


def test_a_line_that_cannot_be_drawn_is_left_to_the_font() -> None:
    assert texts(drawn("═┄")) == ["═", "┄"]


@pytest.mark.parametrize(
    ("character", "eighths"),
    list(zip("█▀▄▐▁▉▏▔▕▘▚▟a", (8, 4, 4, 4, 1, 7, 1, 1, 1, 2, 4, 6, 0), strict=True)),
)
def test_area_of_a_block(character: str, eighths: int) -> None:
    rectangles = block_rectangles(character)

    assert sum(width * height for _, _, width, height in rectangles) == eighths / 8
    assert all(x >= 0 and x + width <= 1 for x, _, width, _ in rectangles)
    assert all(y >= 0 and y + height <= 1 for _, y, _, height in rectangles)


@pytest.mark.parametrize(
    ("character", "dots"),
    [
        ("⠁", [(1 / 4, 1 / 8)]),
        ("⡀", [(1 / 4, 7 / 8)]),
        ("⢀", [(3 / 4, 7 / 8)]),
        ("⠀", []),
        ("x", []),
    ],
)
def test_dots_of_a_braille_character(character: str, dots: list[tuple[float, float]]) -> None:
    assert braille_dots(character) == dots


@pytest.mark.parametrize(
    ("character", "arms", "heavy"),
    [
        ("─", "LR", False),
        ("┏", "DR", True),
        ("╰", "UR", False),
        ("┤", "UDL", False),
        ("╋", "UDLR", True),
        ("╷", "D", False),
    ],
)
def test_arms_of_a_line(character: str, arms: str, heavy: bool) -> None:
    strokes = box_strokes(character)
    assert strokes is not None
    found, width = strokes
    assert set(found) == set(arms)
    assert (width > 2) is heavy


def test_every_colour_name_of_the_terminal_has_a_colour() -> None:
    codes = [*range(30, 38), *range(90, 98)]
    svg = drawn("".join(f"\x1b[{code}mx" for code in codes))
    fills = [text.attrib["fill"] for text in svg.iter(f"{SVG}text")]

    assert len(fills) == len(set(fills)) == 16
    assert all(re.fullmatch("#[0-9a-f]{6}", fill) for fill in fills)
