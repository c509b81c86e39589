"""Which key is which action of the app; ``help_text`` says it to people.

Only letters, digits, arrows and function keys that every terminal sends, none that needs a newer
keyboard protocol.
"""

from __future__ import annotations

from textual.binding import Binding, BindingType

NEAR_S, FAR_S = 10.0, 60.0
"""How far the play head goes by an arrow, and by an arrow with Shift."""

KEYS: list[BindingType] = [
    Binding("q", "leave", show=False),
    Binding("ctrl+q", "leave", show=False, priority=True),
    Binding("ctrl+c", "interrupt", show=False, priority=True),
    Binding("ctrl+z", "suspend_process", show=False),
    Binding("question_mark", "help", show=False),
    Binding("i", "cards", show=False),
    Binding("plus,equals_sign", "load('+')", show=False),
    Binding("minus,underscore", "load('-')", show=False),
    Binding("right_square_bracket", "load(']')", show=False),
    Binding("left_square_bracket", "load('[')", show=False),
    Binding("r", "load('r')", show=False),
    Binding("o", "load('o')", show=False),
    *(Binding(str(digit), f"load('{digit}')", show=False) for digit in range(10)),
    Binding("s", "stop_server", show=False),
    Binding("l", "launch", show=False),
    Binding("p", "profiles", show=False),
    Binding("c", "take_control", show=False),
    Binding("t", "window", show=False),
    Binding("z", "zoom", show=False),
    Binding("f", "filter", show=False),
    Binding("slash", "search", show=False, priority=True),
    Binding("n", "match(-1)", show=False),
    Binding("N", "match(1)", show=False),
    Binding("g", "log_top", show=False),
    Binding("G,F", "log_follow", show=False),
    Binding("e", "cause", show=False),
    Binding("enter", "open_line", show=False),
    Binding("tab,shift+tab", "turn_arrows", show=False, priority=True),
    Binding("up", "log_move(-1)", show=False),
    Binding("down", "log_move(1)", show=False),
    Binding("pageup", "log_page(-1)", show=False),
    Binding("pagedown", "log_page(1)", show=False),
    Binding("space", "play", show=False),
    Binding("left", "sideways(-1)", show=False),
    Binding("right", "sideways(1)", show=False),
    Binding("shift+left", f"seek({-FAR_S})", show=False),
    Binding("shift+right", f"seek({FAR_S})", show=False),
    Binding("home", "edge(False)", show=False),
    Binding("end", "edge(True)", show=False),
    Binding("less_than_sign,comma", "speed(-1)", show=False),
    Binding("greater_than_sign,full_stop", "speed(1)", show=False),
]
