"""Every case of the corpus: what a person should be told, and silence on what is harmless."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gpu_dash.logs.rules.kinds import KINDS
from tests.unit.logs.saying import cases, read

CASES = cases()
ALL = CASES + cases("wordings")


def lines_of(case: dict[str, Any]) -> bytes:
    return "".join(f"{line}\n" for line in case["lines"]).encode()


@pytest.mark.parametrize("case", ALL, ids=[case["id"] for case in ALL])
def test_a_case_is_told_as_it_should_be(case: dict[str, Any]) -> None:
    expect = case["expect"]

    lines, findings = read([lines_of(case)])

    if expect["kind"] == "benign":
        assert findings == []
        assert not any(line.kind for line in lines)
        return
    causes = [finding for finding in findings if finding.root]
    if expect["root_line"] is None:
        assert causes == []
    else:
        (cause,) = causes
        assert (cause.kind, cause.severity) == (expect["kind"], expect["severity"])
        assert cause.line == expect["root_line"] + 1
        assert (cause.subject or None) == expect["gpu_or_rank"]
        assert cause.first_check
    clearest = next(f for f in findings if f.line == expect["highlight_line"] + 1)
    assert clearest.kind == expect["kind"]
    if expect["kind"] != "python_error":  # known only when its record is over
        assert lines[expect["highlight_line"]].kind == expect["kind"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_case_does_not_depend_on_how_its_bytes_arrive(case: dict[str, Any]) -> None:
    data = lines_of(case)

    assert read(data[i : i + 1] for i in range(len(data))) == read([data])


def test_the_corpus_is_whole() -> None:
    assert len(CASES) == 78
    assert len({case["id"] for case in ALL}) == len(ALL)


def test_every_kind_is_worded_in_several_ways() -> None:
    counts = Counter(case["expect"]["kind"] for case in ALL)

    assert {kind for kind in KINDS if counts[kind] < 2} == set()
