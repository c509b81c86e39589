"""One line per card: what is calm stays calm, the card that throttles is seen first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu_dash.agent.store import GpuTrack, ThrottleSpan
from gpu_dash.model.gpu import GpuSample, GpuSourceState, ThrottleKind
from gpu_dash.ui.render.bars import bar
from gpu_dash.ui.render.format import ago, duration, gib, pair, whole
from gpu_dash.ui.render.layout import CARD_GAP
from gpu_dash.ui.render.row import Role, Row, Run
from gpu_dash.ui.view import View

NEAR_LIMIT_CELSIUS = 3.0
"""Headroom at which a card counts as too hot (the verdict's own condition)."""

ALARM_WORDS = {
    ThrottleKind.THERMAL: "THERMAL",
    ThrottleKind.POWER_BRAKE: "BRAKE",
    ThrottleKind.SLOWDOWN: "SLOWED",
}
_CAP_REASON = "sw_power_cap"


@dataclass(frozen=True)
class Reading:
    """What a column is made from."""

    track: GpuTrack
    sample: GpuSample
    throttle: ThrottleSpan | None

    @property
    def is_alarm(self) -> bool:
        """The card throttles for a reason that a person must look at."""
        return self.throttle is not None and self.throttle.kind.is_alarm

    @property
    def sm_clock_max_mhz(self) -> float | None:
        """What the clock is measured against."""
        return self.track.info.sm_clock_max_mhz

    @property
    def memory_total_bytes(self) -> int | None:
        """What the memory is measured against."""
        return self.sample.memory_total_bytes or self.track.info.memory_total_bytes


@dataclass(frozen=True)
class Column:
    """One column of the table."""

    title: str
    width: int
    cells: Callable[[Reading], list[Run]]

    def place(self, row: Row, reading: Reading) -> None:
        """Add a card's cells to its row, against the right edge of the column."""
        cells = Row(self.cells(reading))
        if cells.width < self.width:
            row.add(" " * (self.width - cells.width))
        row.extend(cells.fit(self.width) if cells.width > self.width else cells)
        row.add(" " * self.gap)

    @property
    def gap(self) -> int:
        """Blanks behind the column; the place of the index's sign is one."""
        return 0 if self.cells is _index else 1


def _index(reading: Reading) -> list[Run]:
    number = f"{reading.track.info.gpu:>2}"
    if reading.track.lost:
        return [(number, Role.ALARM), ("✗", Role.ALARM)]
    if reading.is_alarm:
        return [(number, Role.ALARM), ("▲", Role.ALARM)]
    return [(number, Role.STRONG), (" ", Role.PLAIN)]


def _heat_role(reading: Reading) -> Role:
    if reading.throttle is not None and reading.throttle.kind is ThrottleKind.THERMAL:
        return Role.ALARM
    headroom = reading.sample.headroom_celsius
    if headroom is not None and headroom <= NEAR_LIMIT_CELSIUS:
        return Role.WARN
    return Role.PLAIN


def _temperature(reading: Reading) -> list[Run]:
    return [(whole(reading.sample.temperature_celsius, "°"), _heat_role(reading))]


def _headroom(reading: Reading) -> list[Run]:
    headroom = reading.sample.headroom_celsius
    return [("" if headroom is None else f"{headroom:.0f}", _heat_role(reading))]


def _power(reading: Reading) -> list[Run]:
    return [(pair(reading.sample.power_watts, reading.sample.power_limit_watts), Role.PLAIN)]


def _clock_role(reading: Reading) -> Role:
    if reading.throttle is None:
        return Role.PLAIN
    return Role.ALARM if reading.is_alarm else Role.WARN


def _clock(reading: Reading) -> list[Run]:
    text = pair(reading.sample.sm_clock_mhz, reading.sm_clock_max_mhz)
    return [(text, _clock_role(reading))]


def _clock_short(reading: Reading) -> list[Run]:
    return [(whole(reading.sample.sm_clock_mhz), _clock_role(reading))]


def _utilization(reading: Reading) -> list[Run]:
    return [(whole(reading.sample.utilization_percent, "%"), Role.PLAIN)]


def _utilization_short(reading: Reading) -> list[Run]:
    return [(whole(reading.sample.utilization_percent), Role.PLAIN)]


def _memory(reading: Reading) -> list[Run]:
    return [
        (pair(gib(reading.sample.memory_used_bytes), gib(reading.memory_total_bytes)), Role.PLAIN)
    ]


def _memory_percent(reading: Reading) -> list[Run]:
    share = _share(reading.sample.memory_used_bytes, reading.memory_total_bytes)
    return [("–" if share is None else f"{share * 100:.0f}", Role.PLAIN)]


def _share(value: float | None, limit: float | None) -> float | None:
    return None if value is None or not limit else value / limit


def _power_bar(reading: Reading) -> list[Run]:
    return bar(_share(reading.sample.power_watts, reading.sample.power_limit_watts), 8)


def _clock_bar(reading: Reading) -> list[Run]:
    share = _share(reading.sample.sm_clock_mhz, reading.sm_clock_max_mhz)
    role = _clock_role(reading)
    return bar(share, 8, Role.ACCENT if role is Role.PLAIN else role)


def _utilization_bar(reading: Reading) -> list[Run]:
    return bar(_share(reading.sample.utilization_percent, 100.0), 8)


def _memory_bar(reading: Reading) -> list[Run]:
    return bar(_share(reading.sample.memory_used_bytes, reading.memory_total_bytes), 6)


INDEX = Column(" # ", 3, _index)
TEMPERATURE = Column("temp", 4, _temperature)
HEADROOM = Column("room", 4, _headroom)
POWER = Column("W/limit", 8, _power)
POWER_BAR = Column("", 8, _power_bar)
CLOCK = Column("SM MHz", 9, _clock)
CLOCK_BAR = Column("", 8, _clock_bar)
UTILIZATION = Column("util", 4, _utilization)
UTILIZATION_BAR = Column("", 8, _utilization_bar)
MEMORY = Column("mem GiB", 7, _memory)
MEMORY_BAR = Column("", 6, _memory_bar)

_WHOLE = (INDEX, TEMPERATURE, HEADROOM, POWER, CLOCK, UTILIZATION, MEMORY)
_COMPACT = (
    INDEX,
    Column("°C", 4, _temperature),
    Column("rm", 2, _headroom),
    Column("W/limit", 7, _power),
    Column("MHz", 4, _clock_short),
    Column("ut%", 3, _utilization_short),
    Column("m%", 3, _memory_percent),
)
_TIGHT = (
    INDEX,
    Column("°C", 4, _temperature),
    Column("W", 4, lambda reading: [(whole(reading.sample.power_watts), Role.PLAIN)]),
    Column("MHz", 4, _clock_short),
    Column("ut%", 3, _utilization_short),
)
# bars, in the order in which they get room: each stands behind its column
_BARS = ((POWER, POWER_BAR), (CLOCK, CLOCK_BAR), (UTILIZATION, UTILIZATION_BAR),
         (MEMORY, MEMORY_BAR))  # fmt: skip
_WORD_MIN = 7
_WORD_GOOD = 28
_WHY_MIN = 5
"""Cells from which a part of the duration and the reasons says something."""


def columns_for(width: int) -> list[Column]:
    """The columns that a card's line of this width has; the throttle word takes the rest."""
    for form in (_WHOLE, _COMPACT, _TIGHT):
        if _width_of(form) + _WORD_MIN <= width:
            break
    columns = list(form)
    if form is _WHOLE:
        for column, its_bar in _BARS:
            if _width_of([*columns, its_bar]) + _WORD_GOOD <= width:
                columns.insert(columns.index(column) + 1, its_bar)
    return columns


def _width_of(columns: list[Column] | tuple[Column, ...]) -> int:
    return sum(column.width + column.gap for column in columns)


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
    """Why the card is slower than asked, worst first; nothing when it is not.

    The word comes first and fits the narrowest table; reasons follow where there is room.
    """
    throttle = reading.throttle
    if throttle is not None and throttle.kind.is_alarm:
        word = ALARM_WORDS[throttle.kind]
        why = f" {duration(view.now - throttle.began_at)} {' '.join(throttle.reasons)}"
        runs: list[Run] = [(word, Role.SHOUT)]
        return [*runs, (why, Role.ALARM)] if room - len(word) >= _WHY_MIN else runs
    if throttle is not None:
        gap = " " if room > _WORD_MIN else ""
        word = f"cap{gap}{_deficit(reading)}"
        return [(word, Role.WARN), *_if_fits(" power limit costs clock", room - len(word))]
    if _CAP_REASON in reading.sample.throttle_reasons:
        return [("cap", Role.PLAIN), *_if_fits(" at its power limit", room - 3)]
    return []


def _if_fits(text: str, room: int) -> list[Run]:
    return [(text, Role.DIM)] if len(text) <= room else []


def _deficit(reading: Reading) -> str:
    share = _share(reading.sample.sm_clock_mhz, reading.sm_clock_max_mhz)
    return "" if share is None else f"−{(1 - share) * 100:.0f}%"


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
        fits = heading.width + len(source) <= width
        return heading.right([(source, Role.DIM)], width) if fits else heading.fit(width)
    state = f" {store.gpu_state.upper()} {duration(view.now - store.gpu_state_at)} "
    return heading.right([(state, Role.SHOUT), (f" {store.gpu_detail}", Role.WARN)], width)


def _nothing_to_show(view: View, width: int, height: int) -> list[Row]:
    store = view.store
    if store.gpu_state is GpuSourceState.STARTING:
        row = Row([("GPU ", Role.STRONG), ("waiting for the first reading", Role.DIM)])
    else:
        why = store.gpu_detail or "no usable source of GPU readings on this host"
        row = Row([("GPU ", Role.STRONG), (f"{store.gpu_state} ", Role.WARN), (why, Role.PLAIN)])
    return [row.fit(width), *(Row().fit(width) for _ in range(height - 1))]
