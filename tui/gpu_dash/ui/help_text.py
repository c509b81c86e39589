"""What the help screen says: every key, and the short words and signs of the screen."""

from __future__ import annotations

from gpu_dash.ui.render.row import Role, Row

Section = tuple[str, tuple[tuple[str, str], ...]]

_COMMANDS: tuple[Section, ...] = (
    (
        "Load",
        (
            ("+ -", "the ramp's next step up, down; past it double, halve"),
            ("] [", "double, halve"),
            ("1 … 9", "1, 2, 4, 8, 16, 32, 64, 128, 256 requests at a time"),
            ("o", "open loop: the keys set requests per second; and back"),
            ("r", "start the ramp, pause it, resume it"),
            ("0", "stop the load"),
        ),
    ),
    (
        "Server",
        (
            ("l", "launch the profile, when no server runs"),
            ("p", "profiles: flags, memory plan, doctor's checks, launch"),
            ("s", "stop the server; asks first"),
            ("c", "take the controls from another terminal"),
        ),
    ),
)
_REPLAY: Section = (
    "Replay",
    (
        ("Space", "play, pause"),
        ("← →", "10 s back, on; with Shift 60 s"),
        ("Home End", "start, end"),
        ("Tab", "← → Home End for the log, and back"),
        ("< >", "slower, faster: ×1 ×2 ×4 ×8"),
    ),
)
_LOG: Section = (
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
)
_SIGNS: tuple[Section, ...] = (
    (
        "Cards",
        (
            ("room rm", "°C to the card's nearest limit; below 0: past it"),
            ("ut% m%", "time that the card was busy, memory in use"),
            ("▲ THERMAL", "slowed by heat; BRAKE: the chassis, SLOWED: unknown"),
            ("TP1", "the server's worker on it; +: others use it, too"),
            ("cap", "at its power limit (normal); cap −9%: it costs clock"),
        ),
    ),
    (
        "Steps and charts",
        (
            ("thr s", "seconds that cards were slowed by heat in the step"),
            ("✓ ▼", "in the profile's expected band or above it; below it"),
            ("┊16", "here the window of the step with 16 requests opened"),
            ("▬▲2▬", "card 2 was slowed so long; ─2─: at its power limit"),
            ("✗", "an error or failed requests; e finds it in the log"),
        ),
    ),
)
_KEYS_WIDTH = 17


def help_rows(width: int, *, replay: bool, ends_with_screen: bool = False) -> list[Row]:
    """All keys by subject; those of a replay in place of load and server.

    Args:
        width: cells.
        replay: a recorded session is shown.
        ends_with_screen: what runs ends when the dashboard is left.
    """
    after = after_leaving(replay=replay, ends_with_screen=ends_with_screen)
    screen: Section = (
        "Screen",
        (
            ("t", "time window: 2, 5, 15, 60 minutes"),
            ("z", "charts and log, only log, mostly charts"),
            ("i", "the cards: all values, workers, processes, XIDs"),
            ("?", "these keys"),
            ("q Ctrl+Q", f"leave; {after}"),
            ("Ctrl+C", "twice: leave"),
            ("Ctrl+Z", "to the shell for a while; fg comes back"),
        ),
    )
    sections = (*((_REPLAY,) if replay else _COMMANDS), _LOG, screen, *_SIGNS)
    rows: list[Row] = []
    for title, keys in sections:
        if rows:
            rows.append(Row())
        rows.append(Row([(title, Role.STRONG)]))
        for key, meaning in keys:
            rows.append(Row([("  ", Role.PLAIN), (key, Role.KEY)]).pad(_KEYS_WIDTH).add(meaning))
    return [row.fit(width) for row in rows]


def after_leaving(*, replay: bool, ends_with_screen: bool) -> str:
    """What becomes of what runs when the dashboard is left."""
    if replay:
        return "the recording stays as it is"
    return "that ends server and load" if ends_with_screen else "server, load and recording go on"
