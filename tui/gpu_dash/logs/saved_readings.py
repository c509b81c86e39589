"""Readings of the cards from a CSV file: our own ``gpu.csv``, or ``nvidia-smi --query-gpu``.

Of a file of any length the extremes of each ten seconds are kept.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from datetime import tzinfo

from gpu_dash.logs.heat import CardHeat, HeatHistory
from gpu_dash.logs.stamps import utc_seconds
from gpu_dash.model.errors import UsageError
from gpu_dash.model.gpu import GpuSample

_TIME = ("time_utc", "timestamp", "ts", "time")
_GPU = ("gpu", "index", "gpu_index", "device")
_TEMPERATURE = ("temperature_max_celsius", "temperature_celsius", "temperature.gpu", "temp_c")
_HEADROOM = ("headroom_celsius", "temperature.gpu.tlimit")
_CLOCK = ("sm_clock_min_mhz", "sm_clock_mhz", "clocks.sm", "clocks.current.sm", "sm_mhz")
_CLOCK_MAX = ("sm_clock_max_mhz", "clocks.max.sm")
_REASONS = (
    "throttle_reasons",
    "clocks_event_reasons.active",
    "clocks_throttle_reasons.active",
    "reasons",
)
_THERMAL_TIME = ("throttle_thermal_s", "viol_thermal_ns")
_THERMAL_BITS = {0x20: "sw_thermal", 0x40: "hw_thermal"}
_THERMAL_COLUMNS = {
    f"clocks_{word}_reasons.{name}_slowdown": name
    for word in ("event", "throttle")
    for name in _THERMAL_BITS.values()
}


class SavedReadings:
    """What the cards did, by time.

    Args:
        lines: of the file.
        name: of the file, for messages.
        zone: of times that do not name theirs (``nvidia-smi``); ``None``: of this host.

    Raises:
        UsageError: it has no column for the time or for the card, or no row that can be read.
    """

    def __init__(self, lines: Iterable[str], name: str, zone: tzinfo | None) -> None:
        self._history = HeatHistory()
        rows = csv.reader(lines, skipinitialspace=True)
        header = [_column(cell) for cell in next(rows, [])]
        columns = _Columns(header)
        if not columns.has(_TIME) or not columns.has(_GPU):
            raise UsageError(
                f"{name}: no column for the time or the card; give a session's gpu.csv, or "
                "nvidia-smi --query-gpu=timestamp,index,temperature.gpu,clocks.sm,"
                "clocks_event_reasons.active --format=csv"
            )
        counted: dict[int, float] = {}
        for row in rows:
            self._take(columns, row, zone, counted)
        span = self._history.span
        if span is None:
            raise UsageError(f"{name}: no row with a time and a card")
        self.begin, self.end = span
        """Seconds since the epoch of the first and of the last reading, to ten seconds."""

    def between(self, begin: float, end: float) -> tuple[CardHeat, ...]:
        """Every card between two moments in seconds since the epoch."""
        return self._history.between(begin, end)

    def _take(
        self, columns: _Columns, row: list[str], zone: tzinfo | None, counted: dict[int, float]
    ) -> None:
        moment = _moment(columns.text(row, _TIME), zone)
        index = columns.number(row, _GPU)
        if moment is None or index is None:
            return
        gpu = int(index)
        reasons = columns.thermal_reasons(row)
        thermal_time = columns.number(row, _THERMAL_TIME)
        if thermal_time is not None:
            if thermal_time > counted.get(gpu, thermal_time) and not reasons:
                # Shorter than the polling of the bits: only the driver's counter saw it.
                reasons = frozenset({"thermal"})
            counted[gpu] = thermal_time
        sample = GpuSample(
            gpu=gpu,
            temperature_celsius=columns.number(row, _TEMPERATURE),
            headroom_celsius=columns.number(row, _HEADROOM),
            sm_clock_mhz=columns.number(row, _CLOCK),
            throttle_reasons=tuple(reasons),
        )
        self._history.add(moment, sample, columns.number(row, _CLOCK_MAX))


class _Columns:
    """The columns of one file under the names that tools give them."""

    def __init__(self, header: list[str]) -> None:
        self._at = {name: at for at, name in enumerate(header)}

    def has(self, names: tuple[str, ...]) -> bool:
        return any(name in self._at for name in names)

    def text(self, row: list[str], names: tuple[str, ...]) -> str:
        for name in names:
            at = self._at.get(name)
            if at is not None and at < len(row) and row[at].strip():
                return row[at].strip()
        return ""

    def number(self, row: list[str], names: tuple[str, ...]) -> float | None:
        try:
            return float(self.text(row, names).split(" ")[0])
        except ValueError:
            return None

    def thermal_reasons(self, row: list[str]) -> frozenset[str]:
        text = self.text(row, _REASONS)
        if text.startswith("0x"):
            try:
                bits = int(text, 16)
            except ValueError:
                bits = 0
            names = {name for bit, name in _THERMAL_BITS.items() if bits & bit}
        else:
            words = {word.removesuffix("_slowdown") for word in text.replace("|", "+").split("+")}
            names = words & set(_THERMAL_BITS.values())
        for column, name in _THERMAL_COLUMNS.items():
            if self.text(row, (column,)) == "Active":
                names.add(name)
        return frozenset(names)


def _column(cell: str) -> str:
    """``temperature.gpu [C]`` → ``temperature.gpu``."""
    return cell.strip().lstrip("\ufeff").partition(" [")[0].lower()


def _moment(text: str, zone: tzinfo | None) -> float | None:
    try:
        return float(text)
    except ValueError:
        return utc_seconds(text.replace("/", "-"), zone, near=None)
