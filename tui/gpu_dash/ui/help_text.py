"""What the help screen says: every key."""

from __future__ import annotations

from gpu_dash.ui.render.row import Role, Row

_SECTIONS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Load",
        (
            ("+ -", "the ramp's next step up, down; past it double, halve"),
            ("] [", "double, halve"),
            ("1 … 9", "1, 2, 4, 8, 16, 32, 64, 128, 256 requests at a time"),
            ("r", "start the ramp, pause it, resume it"),
            ("0", "stop the load"),
        ),
    ),
    (
        "Server",
        (
            ("l", "launch the profile, when no server runs"),
            ("s", "stop the server; asks first"),
            ("c", "take the controls from another terminal"),
        ),
    ),
    (
        "Log",
        (
            ("↑ ↓ PgUp PgDn", "move; the pane follows new lines only from its end"),
            ("← →", "scroll long lines sideways (Home: back)"),
            ("g G", "oldest line, newest line"),
            ("F End", "follow again"),
            ("e", "newest finding, then the one before it; causes first"),
            ("/ n N", "search, next and previous match"),
            ("f", "show all, findings, errors, or the searched text"),
            ("Enter", "the line in full"),
        ),
    ),
    (
        "Screen",
        (
            ("t", "time window: 2, 5, 15, 60 minutes"),
            ("z", "charts and log, only log, mostly charts"),
            ("?", "these keys"),
            ("q Ctrl+Q", "leave (or Ctrl+C twice); what runs goes on"),
            ("Ctrl+Z", "to the shell for a while; fg comes back"),
        ),
    ),
)
_REPLAY = (
    "Replay",
    (
        ("Space", "play, pause"),
        ("← →", "10 s back, on; with Shift 60 s"),
        ("Home End", "start, end"),
        ("Tab", "← → Home End for the log, and back"),
        ("< >", "slower, faster: ×1 ×2 ×4 ×8"),
    ),
)
_KEYS_WIDTH = 17


def help_rows(width: int, *, replay: bool) -> list[Row]:
    """All keys by subject; those of a replay in place of load and server."""
    sections = (_REPLAY, *_SECTIONS[2:]) if replay else _SECTIONS
    rows: list[Row] = []
    for title, keys in sections:
        if rows:
            rows.append(Row())
        rows.append(Row([(title, Role.STRONG)]))
        for key, meaning in keys:
            rows.append(Row([("  ", Role.PLAIN), (key, Role.KEY)]).pad(_KEYS_WIDTH).add(meaning))
    return [row.fit(width) for row in rows]
