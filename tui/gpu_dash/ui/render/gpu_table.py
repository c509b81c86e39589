"""One line per card: what is calm stays calm, the card that throttles is seen first."""

from __future__ import annotations

from textwrap import wrap

from gpu_dash.agent.store import GpuTrack, Store
from gpu_dash.model.gpu import GpuSourceState, ThrottleKind
from gpu_dash.ui.render.card_details import strangers_on
from gpu_dash.ui.render.format import ago, duration
from gpu_dash.ui.render.gpu_columns import WORD_MIN, Column, Reading, columns_for
from gpu_dash.ui.render.layout import CARD_GAP
from gpu_dash.ui.render.row import ELLIPSIS, Role, Row, Run, clean
from gpu_dash.ui.view import View

ALARM_WORDS = {
    ThrottleKind.THERMAL: "THERMAL",
    ThrottleKind.POWER_BRAKE: "BRAKE",
    ThrottleKind.SLOWDOWN: "SLOWED",
}
_CAP_REASON = "sw_power_cap"
_UNDER_WHY = " " * 4
_WHY_MIN = 5
"""Cells from which a part of the duration and the reasons says something."""


def gpu_rows(view: View, width: int, height: int, side_by_side: int, *, titles: bool) -> list[Row]:
    """The panel: titles, and every card in one or more columns, filled downwards."""
    tracks = view.store.gpu_tracks()
    if not tracks:
        return _nothing_to_show(view, width, height)
    each = (width - CARD_GAP * (side_by_side - 1)) // side_by_side
    columns = columns_for(each)
    down = -(-len(tracks) // side_by_side)
    rows = []
    if titles:
        heading = Row()
        for place in range(side_by_side):
            heading.pad(place * (each + CARD_GAP)).extend(_titles(columns))
        rows.append(_with_source(view, heading, width))
    for line in range(down):
        row = Row()
        for place in range(side_by_side):
            position = place * down + line
            if position < len(tracks):
                row.pad(place * (each + CARD_GAP))
                row.extend(card_row(view, tracks[position], columns, each))
        rows.append(row.fit(width))
    return rows


def card_row(view: View, track: GpuTrack, columns: list[Column], width: int) -> Row:
    """One card."""
    row = Row()
    if track.latest is None:
        row.add(f"{track.info.gpu:>2}", Role.STRONG).pad(4)
        if track.lost:
            row.add("✗ LOST ", Role.ALARM).add(track.lost)
        else:
            row.add("no reading yet", Role.DIM)
        return row.fit(width)
    throttle = track.worst_throttle
    reading = Reading(track=track, sample=track.latest, throttle=throttle)
    for column in columns:
        column.place(row, reading)
    if track.lost:
        return row.dimmed().add("✗ LOST ", Role.ALARM).add(track.lost).fit(width)
    if view.gpu_is_stale(track):
        return (
            row.dimmed()
            .add(_old(view.age(track.latest_at), width - row.width), Role.DIM)
            .fit(width)
        )
    return row.extend(throttle_word(view, reading, width - row.width)).fit(width)


def _old(age: float | None, room: int) -> str:
    if age is None:
        return "no data"
    return ago(age) if len(ago(age)) <= room else duration(age)


def throttle_word(view: View, reading: Reading, room: int) -> list[Run]:
    """Why the card is slower than asked, worst first; else whether the server uses it.

    The word comes first and fits the narrowest table; reasons follow where there is room.
    """
    throttle = reading.throttle
    if throttle is not None and throttle.kind.is_alarm:
        word = ALARM_WORDS[throttle.kind]
        why = f" {duration(view.now - throttle.began_at)} {' '.join(throttle.reasons)}"
        runs: list[Run] = [(word, Role.SHOUT)]
        return [*runs, (why, Role.ALARM)] if room - len(word) >= _WHY_MIN else runs
    if reading.is_warning:
        gap = " " if room > WORD_MIN else ""
        word = f"cap{gap}{_deficit(reading)}"
        return [(word, Role.WARN), *_if_fits(" power limit costs clock", room - len(word))]
    if throttle is not None or _CAP_REASON in reading.sample.throttle_reasons:
        return [("cap", Role.PLAIN), *_if_fits(" at its power limit", room - 3)]
    return _users(view, reading.track.info.gpu, room)


def _users(view: View, gpu: int, room: int) -> list[Run]:
    """Who works on a card that is calm: workers of the server, or somebody else."""
    store = view.store
    strangers = strangers_on(store, gpu)
    others = ", ".join(dict.fromkeys(f"{each.name} ({each.pid})" for each in strangers))
    workers = " ".join(store.server.workers_on(gpu))
    if workers and len(workers) <= room:
        shared = f" shared with {others}"
        runs: list[Run] = [(workers, Role.DIM)]
        if strangers:
            runs += [(shared, Role.WARN)] if len(workers + shared) <= room else [("+", Role.WARN)]
        return runs
    visible = store.server.visible_gpus
    if visible is None or gpu in visible:
        return []
    by = f": {others}" if strangers else " by the server"
    return [("unused", Role.DIM), *_if_fits(by, room - 6)]


def _if_fits(text: str, room: int) -> list[Run]:
    return [(text, Role.DIM)] if len(text) <= room else []


def _deficit(reading: Reading) -> str:
    deficit = reading.clock_deficit
    return "" if deficit is None else f"−{deficit * 100:.0f}%"


def _titles(columns: list[Column]) -> Row:
    row = Row()
    for column in columns:
        row.add(column.title[: column.width].rjust(column.width), Role.DIM)
        row.add(" " * column.gap, Role.DIM)
    return row.add("throttle", Role.DIM)


def _with_source(view: View, heading: Row, width: int) -> Row:
    """What cards these are, and how their source fares, at the right of the titles."""
    store = view.store
    names = {track.info.name for track in store.gpus.values()}
    cards = f"{len(store.gpus)} × {names.pop()}" if len(names) == 1 else f"{len(store.gpus)} cards"
    if store.gpu_state in (GpuSourceState.LIVE, GpuSourceState.STARTING):
        source = f"  {cards} · {store.gpu_source}"
        for words in (f"{source}{_heard(store)}", source):
            if heading.width + len(words) <= width:
                return heading.right([(words, Role.DIM)], width)
        return heading.fit(width)
    state = f" {store.gpu_state.upper()} {duration(view.now - store.gpu_state_at)} "
    return heading.right([(state, Role.SHOUT), (f" {store.gpu_detail}", Role.WARN)], width)


def _heard(store: Store) -> str:
    """Where the cards' faults are heard; simulated ones have none."""
    if store.gpu_state is not GpuSourceState.LIVE or store.gpu_source == "sim":
        return ""
    return f" · XIDs: {' '.join(store.gpu_event_sources) or 'not heard'}"


def _nothing_to_show(view: View, width: int, height: int) -> list[Row]:
    store = view.store
    if store.gpu_state is GpuSourceState.STARTING:
        row = Row([("GPU ", Role.STRONG), ("waiting for the first reading", Role.DIM)])
        return [row.fit(width)]
    why = store.gpu_detail or "no usable source of GPU readings on this host"
    first, *more = wrap(
        clean(f"GPU {store.gpu_state} {why}"),
        width,
        subsequent_indent=_UNDER_WHY,
        max_lines=height,
        placeholder=f" {ELLIPSIS}",
    )
    row = Row([("GPU ", Role.STRONG), (f"{store.gpu_state} ", Role.WARN)])
    row.add(first[row.width :])
    return [line.fit(width) for line in (row, *(Row([(text, Role.PLAIN)]) for text in more))]
