"""The help names every key that does something, and none that does not."""

from __future__ import annotations

import pytest
from textual.binding import Binding

from gpu_dash.ui.bindings import KEYS
from gpu_dash.ui.help_text import help_rows

WRITTEN = {
    "plus": "+", "minus": "-", "right_square_bracket": "]", "left_square_bracket": "[",
    "question_mark": "?", "slash": "/", "less_than_sign": "<", "greater_than_sign": ">",
    "up": "↑", "down": "↓", "left": "←", "right": "→", "pageup": "PgUp", "pagedown": "PgDn",
    "home": "Home", "end": "End", "enter": "Enter", "tab": "Tab", "space": "Space",
    "ctrl+q": "Ctrl+Q", "ctrl+z": "Ctrl+Z", "ctrl+c": "Ctrl+C", "shift+left": "Shift",
    "shift+right": "Shift",
}  # fmt: skip
ALIASES = {"equals_sign", "underscore", "comma", "full_stop", "shift+tab"}
PRESETS = set("123456789")


def test_every_key_is_in_the_help() -> None:
    texts = [row.text for replay in (False, True) for row in help_rows(100, replay=replay)]
    words = {word.strip(";:()") for text in texts for word in text.split()}
    keys = {
        key for binding in KEYS if isinstance(binding, Binding) for key in binding.key.split(",")
    }

    missing = {key for key in keys - ALIASES - PRESETS if WRITTEN.get(key, key) not in words}

    assert not missing


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("replay", [False, True])
def test_the_help_fits_eighty_columns(replay: bool, ends: bool) -> None:
    rows = help_rows(70, replay=replay, ends_with_screen=ends)

    assert not any("…" in row.text.replace("1 … 9", "") for row in rows)


@pytest.mark.parametrize("sign", ["room", "rm", "m%", "ut%", "▲", "cap", "thr s", "▬▲2▬", "┊16"])
def test_the_short_words_of_the_screen_are_explained(sign: str) -> None:
    assert any(sign in row.text[:17] for row in help_rows(70, replay=True))


def test_what_ends_with_the_screen_is_not_said_to_go_on() -> None:
    texts = {
        ends: "\n".join(row.text for row in help_rows(70, replay=False, ends_with_screen=ends))
        for ends in (False, True)
    }

    assert "server, load and recording go on" in texts[False]
    assert "go on" not in texts[True]
    assert "leave; that ends server and load" in texts[True]
