"""Draw a terminal's screen as SVG: colours, weights, and lines that meet.

Text is set in whatever monospace font the viewer has. Block, braille and box characters are drawn
as shapes instead, because a font rarely fills its cell exactly and charts are made of them.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

import pyte
from pyte.screens import Char

CELL_WIDTH = 8.43
"""The advance of DejaVu Sans Mono at ``FONT_SIZE``, and within 1 % of most others'."""
CELL_HEIGHT = 17.0
FONT_SIZE = 14
BASELINE = 13.0
PADDING = 10.0
FONTS = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"

FOREGROUND = "#d8d8d8"
BACKGROUND = "#101418"
PALETTE = {
    "black": "#1d2329",
    "red": "#d9534f",
    "green": "#5fae57",
    "brown": "#d0a336",  # pyte's name for the yellow of the eight colours
    "blue": "#4f86d9",
    "magenta": "#b06fc4",
    "cyan": "#45a7b5",
    "white": "#c8ccd0",
    "brightblack": "#6b747d",
    "brightred": "#ff7a75",
    "brightgreen": "#86d67d",
    "brightbrown": "#f2cc60",
    "brightyellow": "#f2cc60",
    "brightblue": "#7fb0ff",
    "brightmagenta": "#d79be8",
    "bfightmagenta": "#d79be8",  # pyte spells it so
    "brightcyan": "#6fd3e0",
    "brightwhite": "#ffffff",
}

# The eight dots of a braille cell in the order of their bits: column, row.
BRAILLE_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
# U+2596 to U+259F: which quarters are filled.
QUARTERS = ("3", "4", "1", "134", "14", "123", "124", "2", "23", "234")
SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}
DIRECTIONS = {
    "HORIZONTAL": "LR",
    "VERTICAL": "UD",
    "UP": "U",
    "DOWN": "D",
    "LEFT": "L",
    "RIGHT": "R",
}
STROKE_WIDTHS = {"LIGHT": 1.2, "HEAVY": 2.6}

Rectangle = tuple[float, float, float, float]
"""x, y, width, height in cells."""


def block_rectangles(character: str) -> list[Rectangle]:
    """The rectangles of a block element (U+2580 to U+259F without the shades), in cells."""
    code = ord(character)
    if character == "▀":
        return [(0, 0, 1, 0.5)]
    if character == "▐":
        return [(0.5, 0, 0.5, 1)]
    if character == "▔":
        return [(0, 0, 1, 1 / 8)]
    if character == "▕":
        return [(7 / 8, 0, 1 / 8, 1)]
    if 0x2581 <= code <= 0x2588:
        height = (code - 0x2580) / 8
        return [(0, 1 - height, 1, height)]
    if 0x2589 <= code <= 0x258F:
        return [(0, 0, (0x2590 - code) / 8, 1)]
    if 0x2596 <= code <= 0x259F:
        quarters = (int(digit) - 1 for digit in QUARTERS[code - 0x2596])
        return [(quarter % 2 / 2, quarter // 2 / 2, 0.5, 0.5) for quarter in quarters]
    return []


def braille_dots(character: str) -> list[tuple[float, float]]:
    """The centres of the dots of a braille character, in cells."""
    bits = ord(character) - 0x2800
    if not 0 <= bits <= 0xFF:
        return []
    return [
        ((column + 0.5) / 2, (row + 0.5) / 4)
        for bit, (column, row) in enumerate(BRAILLE_DOTS)
        if bits >> bit & 1
    ]


def box_strokes(character: str) -> tuple[str, float] | None:
    """The arms of a box drawing character as letters of ``LRUD``, and their width.

    None for every other character, dashed, double and mixed lines among them.
    """
    if not 0x2500 <= ord(character) <= 0x257F:
        return None
    weight, *words = unicodedata.name(character).removeprefix("BOX DRAWINGS ").split()
    words = [word for word in words if word not in {"AND", "ARC"}]
    if weight not in STROKE_WIDTHS or not all(word in DIRECTIONS for word in words):
        return None
    return "".join(DIRECTIONS[word] for word in words), STROKE_WIDTHS[weight]


@dataclass
class _Canvas:
    """What is drawn, layer by layer; shapes of one look share one path."""

    backgrounds: list[str] = field(default_factory=list)
    fills: dict[tuple[str, float], list[str]] = field(default_factory=lambda: defaultdict(list))
    strokes: dict[tuple[str, float], list[str]] = field(default_factory=lambda: defaultdict(list))
    texts: list[str] = field(default_factory=list)

    def draw_shape(self, row: int, column: int, character: str, colour: str) -> bool:
        """Draw a character as a shape; false if it has none and needs a font."""
        x, y = _place(row, column)
        if character in SHADES:
            self._fill(x, y, (0, 0, 1, 1), colour, SHADES[character])
        elif rectangles := block_rectangles(character):
            for rectangle in rectangles:
                self._fill(x, y, rectangle, colour)
        elif dots := braille_dots(character):
            radius = CELL_WIDTH / 7
            for dot_x, dot_y in dots:
                left, middle = x + dot_x * CELL_WIDTH - radius, y + dot_y * CELL_HEIGHT
                self.fills[colour, 1.0].append(
                    f"M{left:.2f} {middle:.2f}"
                    f"a{radius:.2f} {radius:.2f} 0 1 0 {2 * radius:.2f} 0"
                    f"a{radius:.2f} {radius:.2f} 0 1 0 {-2 * radius:.2f} 0z"
                )
        elif box := box_strokes(character):
            self._stroke(x, y, *box, colour)
        else:
            return False
        return True

    def _fill(
        self, x: float, y: float, rectangle: Rectangle, colour: str, opacity: float = 1.0
    ) -> None:
        left, top, width, height = rectangle
        self.fills[colour, opacity].append(
            f"M{x + left * CELL_WIDTH:.2f} {y + top * CELL_HEIGHT:.2f}"
            f"h{width * CELL_WIDTH:.2f}v{height * CELL_HEIGHT:.2f}h{-width * CELL_WIDTH:.2f}z"
        )

    def _stroke(self, x: float, y: float, arms: str, width: float, colour: str) -> None:
        centre_x, centre_y = x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2
        ends = {
            "L": f"H{x:.2f}",
            "R": f"H{x + CELL_WIDTH:.2f}",
            "U": f"V{y:.2f}",
            "D": f"V{y + CELL_HEIGHT:.2f}",
        }
        self.strokes[colour, width] += [f"M{centre_x:.2f} {centre_y:.2f}{ends[a]}" for a in arms]

    def svg(self, columns: int, rows: int) -> str:
        """The whole document."""
        width = columns * CELL_WIDTH + 2 * PADDING
        height = rows * CELL_HEIGHT + 2 * PADDING
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" xml:space="preserve" '
            f'font-family="{FONTS}" font-size="{FONT_SIZE}">',
            f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>',
            *self.backgrounds,
        ]
        for (colour, opacity), paths in self.fills.items():
            shade = "" if opacity == 1.0 else f' fill-opacity="{opacity}"'
            lines.append(f'<path fill="{colour}"{shade} d="{"".join(paths)}"/>')
        for (colour, stroke), paths in self.strokes.items():
            lines.append(
                f'<path stroke="{colour}" stroke-width="{stroke}" stroke-linecap="square" '
                f'fill="none" d="{"".join(paths)}"/>'
            )
        return "\n".join([*lines, *self.texts, "</svg>", ""])


def render_svg(screen: pyte.Screen) -> str:
    """The screen as an SVG document."""
    canvas = _Canvas()
    for row in range(screen.lines):
        cells = [screen.buffer[row][column] for column in range(screen.columns)]
        canvas.backgrounds += _backgrounds(row, cells)
        characters = list(_characters(cells))
        rest = [
            (column, cell)
            for column, cell in characters
            if not canvas.draw_shape(row, column, cell.data, _colours(cell)[0])
        ]
        canvas.texts += [_text(row, run) for run in _runs(rest)]
    return canvas.svg(screen.columns, screen.lines)


def _place(row: int, column: int) -> tuple[float, float]:
    """The top left corner of a cell."""
    return PADDING + column * CELL_WIDTH, PADDING + row * CELL_HEIGHT


def _colour(name: str, default: str) -> str:
    if name == "default":
        return default
    return PALETTE.get(name) or f"#{name}"


def _colours(cell: Char) -> tuple[str, str]:
    """Foreground and background as they are seen."""
    pair = (_colour(cell.fg, FOREGROUND), _colour(cell.bg, BACKGROUND))
    return (pair[1], pair[0]) if cell.reverse else pair


def _backgrounds(row: int, cells: list[Char]) -> Iterator[str]:
    """One rectangle for each run of cells of one background."""
    start = 0
    for column in range(1, len(cells) + 1):
        colour = _colours(cells[start])[1]
        if column < len(cells) and _colours(cells[column])[1] == colour:
            continue
        if colour != BACKGROUND:
            x, y = _place(row, start)
            yield (
                f'<rect x="{x:.2f}" y="{y:.2f}" width="{(column - start) * CELL_WIDTH:.2f}" '
                f'height="{CELL_HEIGHT:.2f}" fill="{colour}"/>'
            )
        start = column


def _characters(cells: list[Char]) -> Iterator[tuple[int, Char]]:
    """The cells that hold a character: no blanks, no right halves of wide ones."""
    for column, cell in enumerate(cells):
        if cell.data.strip():
            yield column, cell


def _runs(characters: list[tuple[int, Char]]) -> Iterator[list[tuple[int, Char]]]:
    """Neighbours of one look that may be set as one text.

    A character outside ASCII stands alone: another font may lend it, with another advance.
    """
    run: list[tuple[int, Char]] = []
    for column, cell in characters:
        if run:
            last_column, last = run[-1]
            same_look = last._replace(data="", bg="") == cell._replace(data="", bg="")
            plain = last.data.isascii() and cell.data.isascii()
            if column != last_column + 1 or not (same_look and plain):
                yield run
                run = []
        run.append((column, cell))
    if run:
        yield run


def _text(row: int, run: list[tuple[int, Char]]) -> str:
    column, cell = run[0]
    x, y = _place(row, column)
    look = [f'fill="{_colours(cell)[0]}"']
    if cell.bold:
        look.append('font-weight="bold"')
    if cell.italics:
        look.append('font-style="italic"')
    if cell.underscore or cell.strikethrough:
        line = "underline" if cell.underscore else "line-through"
        look.append(f'text-decoration="{line}"')
    if len(run) > 1:
        look.append(f'textLength="{len(run) * CELL_WIDTH:.2f}"')
    text = escape("".join(character.data for _, character in run), quote=False)
    return f'<text x="{x:.2f}" y="{y + BASELINE:.2f}" {" ".join(look)}>{text}</text>'
