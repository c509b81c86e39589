"""Prompts from the files that people have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_dash.load import dataset
from gpu_dash.load.dataset import read_dataset
from gpu_dash.model.errors import UsageError

SHARE_GPT = [
    {"id": "a", "conversations": [{"from": "gpt", "value": "x"}, {"from": "human", "value": "1"}]},
    {"id": "b", "conversations": []},
    {"id": "c", "conversations": [{"from": "human", "value": "2"}, {"from": "gpt", "value": "y"}]},
]


@pytest.mark.parametrize(
    ("entry", "turns"),
    [
        ({"prompt": "p"}, ("p",)),
        ({"text": "t"}, ("t",)),
        ({"question": "q", "answer": "a"}, ("q",)),
        ("bare", ("bare",)),
        (
            {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]},
            ("u",),
        ),
        (
            {
                "messages": [
                    {"role": role, "content": f"{n}"}
                    for n, role in enumerate(("user", "assistant", "user", "tool", "user"))
                ]
            },
            ("0", "2", "4"),
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": "a"},
                    {"role": "user", "content": [{}]},
                    {"role": "user", "content": "c"},
                ]
            },
            ("a",),
        ),
    ],
)
def test_what_an_entry_asks(entry: Any, turns: tuple[str, ...], tmp_path: Path) -> None:
    lines, whole = tmp_path / "lines.jsonl", tmp_path / "whole.json"
    lines.write_text(f"\n{json.dumps(entry)}\n\n")
    whole.write_text(json.dumps([entry, 7, {"other": 1}], indent=1))
    assert read_dataset(str(lines)) == read_dataset(str(whole)) == (turns,)


def test_share_gpt_gives_the_first_turn_of_the_person(tmp_path: Path) -> None:
    file = tmp_path / "share.json"
    file.write_text(json.dumps(SHARE_GPT))
    assert read_dataset(str(file)) == (("1",), ("2",))


def test_no_more_is_kept_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "MAX_PROMPTS", 3)
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(json.dumps({"prompt": str(number)}) for number in range(9)))
    assert read_dataset(str(file)) == (("0",), ("1",), ("2",))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[]", "no prompt in it"),
        ('{"prompt": "a"}\n{"prompt', "line 2"),
        ("[1, 2", "JSON list"),
        ("", "no prompt in it"),
        (None, "No such file"),
    ],
)
def test_a_file_that_has_no_prompts_is_refused_in_words(
    content: str | None, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "odd.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=says):
        read_dataset(str(file))
