"""Rows keep their width and obey nobody."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from gpu_dash.ui.render.row import Role, Row, clean, text_width

WIDE = "温度计 is wide"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abc", 5, "abc  "),
        ("abc", 3, "abc"),
        ("abcdef", 4, "abc…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        (WIDE, 4, "温 …"),
        (WIDE, 3, "温…"),
        (WIDE, 2, " …"),
        ("", 2, "  "),
    ],
)
def test_fit_gives_the_width_asked_for(text: str, width: int, shown: str) -> None:
    row = Row([(text, Role.PLAIN)]).fit(width)

    assert row.text == shown
    assert cell_len(row.text) == width == row.width


def test_fit_cuts_across_runs() -> None:
    row = Row([("ab", Role.STRONG), ("cd", Role.DIM), ("ef", Role.PLAIN)]).fit(4)

    assert row.runs == [("ab", Role.STRONG), ("c…", Role.DIM)]


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("[bold]not markup[/bold]", "[bold]not markup[/bold]"),
        ("a\tb", "a   b"),
        ("two\nlines", "two lines"),
        ("\u202egnp.exe", "gnp.exe"),
    ],
)
def test_foreign_text_loses_what_a_terminal_would_obey(foreign: str, shown: str) -> None:
    assert Row([(foreign, Role.PLAIN)]).text == shown
    assert clean(foreign) == shown


def test_runs_of_one_role_are_joined_so_that_equal_rows_are_equal() -> None:
    together = Row([("abc", Role.DIM)])
    apart = Row([("a", Role.DIM), ("", Role.ALARM), ("bc", Role.DIM)])

    assert together == apart
    assert together != Row([("abc", Role.PLAIN)])


def test_right_puts_a_tail_at_the_edge_and_lets_the_head_give_way() -> None:
    row = Row([("a long head", Role.PLAIN)]).right([("tail", Role.DIM)], 10)

    assert row.text == "a lon…tail"


def test_right_leaves_room_between_head_and_tail() -> None:
    assert Row([("head", Role.PLAIN)]).right([("tail", Role.DIM)], 12).text == "head    tail"


def test_dimmed_keeps_the_text() -> None:
    row = Row([("93°", Role.ALARM), (" ok", Role.PLAIN)]).dimmed()

    assert row.runs == [("93° ok", Role.DIM)]


def test_text_width_counts_cells() -> None:
    assert text_width("温度") == 4
    assert text_width("━▲…°") == 4
