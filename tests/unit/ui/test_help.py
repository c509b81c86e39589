"""The help names every key that does something, and none that does not."""

from __future__ import annotations

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


def test_the_help_fits_eighty_columns() -> None:
    for replay in (False, True):
        assert not any("…" in row.text.replace("1 … 9", "") for row in help_rows(70, replay=replay))
