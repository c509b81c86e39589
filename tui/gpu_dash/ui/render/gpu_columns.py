"""The columns of a card's line: what each shows, and which of them a width has room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpu_dash.agent.store import GpuTrack, ThrottleSpan
from gpu_dash.model.gpu import GpuSample, ThrottleKind
from gpu_dash.ui.render.bars import bar
from gpu_dash.ui.render.format import gib, pair, whole
from gpu_dash.ui.render.row import Role, Row, Run

COSTS_CLOCK = 0.03
"""The part of its clock that a card at its power limit must lack now to be a warning."""
NEAR_LIMIT_CELSIUS = 3.0
"""Headroom at which a card counts as too hot (the verdict's own condition)."""


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
    def is_warning(self) -> bool:
        """The card is at its power limit and runs below its clock now; a limit that let it go
        stays on for some seconds without a cost."""
        if self.throttle is None or self.is_alarm:
            return False
        deficit = self.clock_deficit
        return deficit is None or deficit >= COSTS_CLOCK

    @property
    def clock_deficit(self) -> float | None:
        """The part of the clock that is lacking now."""
        part = share(self.sample.sm_clock_mhz, self.sm_clock_max_mhz)
        return None if part is None else 1 - part

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


def _headroom_short(reading: Reading) -> list[Run]:
    headroom = reading.sample.headroom_celsius
    short = "<0" if headroom is not None and headroom <= -9.5 else None
    return [(short, _heat_role(reading))] if short else _headroom(reading)


def _power(reading: Reading) -> list[Run]:
    return [(pair(reading.sample.power_watts, reading.sample.power_limit_watts), Role.PLAIN)]


def _power_short(reading: Reading) -> list[Run]:
    """Without the limit where both would not fit: from a kilowatt on."""
    both = _power(reading)
    fits = len(both[0][0]) <= len("999/999")
    return both if fits else [(whole(reading.sample.power_watts), Role.PLAIN)]


def _clock_role(reading: Reading) -> Role:
    if reading.is_alarm:
        return Role.ALARM
    return Role.WARN if reading.is_warning else Role.PLAIN


def _clock(reading: Reading) -> list[Run]:
    text = pair(reading.sample.sm_clock_mhz, reading.sm_clock_max_mhz)
    return [(text, _clock_role(reading))]


def _clock_short(reading: Reading) -> list[Run]:
    return [(whole(reading.sample.sm_clock_mhz), _clock_role(reading))]


def _utilization(reading: Reading) -> list[Run]:
    return [(_mig_or(reading, whole(reading.sample.utilization_percent, "%")), Role.PLAIN)]


def _utilization_short(reading: Reading) -> list[Run]:
    return [(_mig_or(reading, whole(reading.sample.utilization_percent)), Role.PLAIN)]


def _mig_or(reading: Reading, busy: str) -> str:
    """A card that is split into parts does not tell how busy it is."""
    return "n/a" if reading.track.info.mig_uuids else busy


def _memory(reading: Reading) -> list[Run]:
    return [
        (pair(gib(reading.sample.memory_used_bytes), gib(reading.memory_total_bytes)), Role.PLAIN)
    ]


def _memory_percent(reading: Reading) -> list[Run]:
    used = share(reading.sample.memory_used_bytes, reading.memory_total_bytes)
    return [("–" if used is None else f"{used * 100:.0f}", Role.PLAIN)]


def share(value: float | None, limit: float | None) -> float | None:
    """A value as a part of what it is measured against."""
    return None if value is None or not limit else value / limit


def _power_bar(reading: Reading) -> list[Run]:
    return bar(share(reading.sample.power_watts, reading.sample.power_limit_watts), 8)


def _clock_bar(reading: Reading) -> list[Run]:
    part = share(reading.sample.sm_clock_mhz, reading.sm_clock_max_mhz)
    role = _clock_role(reading)
    return bar(part, 8, Role.ACCENT if role is Role.PLAIN else role)


def _utilization_bar(reading: Reading) -> list[Run]:
    return bar(share(reading.sample.utilization_percent, 100.0), 8)


def _memory_bar(reading: Reading) -> list[Run]:
    return bar(share(reading.sample.memory_used_bytes, reading.memory_total_bytes), 6)


INDEX = Column(" # ", 3, _index)
TEMPERATURE = Column("temp", 4, _temperature)
HEADROOM = Column("room", 4, _headroom)
POWER = Column("W/limit", 9, _power)
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
    Column("rm", 2, _headroom_short),
    Column("W/limit", 7, _power_short),
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
WORD_MIN = 7
"""Cells of the shortest throttle word."""
_WORD_GOOD = 28
"""Cells that leave room for duration and reasons beside the word."""


def columns_for(width: int) -> list[Column]:
    """The columns that a card's line of this width has; the throttle word takes the rest."""
    for form in (_WHOLE, _COMPACT, _TIGHT):
        if _width_of(form) + WORD_MIN <= width:
            break
    columns = list(form)
    if form is _WHOLE:
        for column, its_bar in _BARS:
            if _width_of([*columns, its_bar]) + _WORD_GOOD <= width:
                columns.insert(columns.index(column) + 1, its_bar)
    return columns


def _width_of(columns: Sequence[Column]) -> int:
    return sum(column.width + column.gap for column in columns)
