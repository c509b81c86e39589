"""One cell, there and back."""

from __future__ import annotations

import csv
import io

import pytest

from gpu_dash.record.cells import csv_line, flag_cell, number_cell, text_cell, text_of, value_of


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("plain", "plain"),
        ("", ""),
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "' ⏎ =1"),
        ("＝1+1", "'＝1+1"),
        ("'=1", "''=1"),
        ("'quoted'", "'quoted'"),
        ("a=1", "a=1"),
        ("\x1b[31m=1+1\x1b[0m", "'=1+1"),
        ("one\ntwo", "one ⏎ two"),
        ("half \ud800", "half \ufffd"),
    ],
)
def test_a_text_never_starts_a_formula_and_stays_on_one_line(text: str, cell: str) -> None:
    written = text_cell(text)
    assert written[:1] not in ("=", "+", "-", "@", "\t", "\r")
    if not text.startswith("\r"):
        assert written == cell
    assert len(csv_line([written]).splitlines()) == 1


@pytest.mark.parametrize("text", ["plain", "=1", "'=1", "''-x", "'quoted'", "@", "a,b \"c\" 'd'"])
def test_the_way_back_is_exact(text: str) -> None:
    (cells,) = csv.reader(io.StringIO(csv_line([text_cell(text), "x"]).decode()))
    assert text_of(cells[0]) == text


@pytest.mark.parametrize(
    ("value", "digits", "cell"),
    [
        (None, 3, ""),
        (float("nan"), 3, ""),
        (float("inf"), 3, ""),
        (0, 3, "0"),
        (0.0, 3, "0"),
        (-0.0001, 3, "0"),
        (65.0, 3, "65"),
        (65.125, 3, "65.125"),
        (100.0, 3, "100"),
        (-12.5, 3, "-12.5"),
        (1 / 3, 6, "0.333333"),
        (1e-9, 6, "0"),
        (150 * 2**30, 3, "161061273600"),
        (98955615.25, 3, "98955615.25"),
    ],
)
def test_numbers_are_plain(value: float | None, digits: int, cell: str) -> None:
    assert number_cell(value, digits) == cell


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("", None),
        ("12", 12),
        ("-1.5", -1.5),
        ("true", True),
        ("false", False),
        ("nan", None),
        ("inf", None),
        ("words", None),
    ],
)
def test_values_come_back(cell: str, value: object) -> None:
    assert value_of(cell) == value
    assert type(value_of(cell)) is type(value)


def test_flags() -> None:
    assert (flag_cell(True), flag_cell(False)) == ("true", "false")
