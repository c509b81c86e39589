"""Readings of the cards from a CSV file: our own ``gpu.csv``, or ``nvidia-smi --query-gpu``.

Kept are ten-second sums per card, so that a day of readings takes little memory.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo

from gpu_dash.logs.heat import CardHeat
from gpu_dash.logs.stamps import utc_seconds
from gpu_dash.model.errors import UsageError

BUCKET_S = 10.0

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


@dataclass(slots=True)
class _Bucket:
    temperature: float | None = None
    headroom: float | None = None
    clock: float | None = None
    reasons: frozenset[str] = frozenset()


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
        self._buckets: dict[int, dict[int, _Bucket]] = {}
        self._clock_max: dict[int, float] = {}
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
        if not self._buckets:
            raise UsageError(f"{name}: no row with a time and a card")

    @property
    def begin(self) -> float:
        """Seconds since the epoch of the first reading."""
        return min(self._buckets) * BUCKET_S

    @property
    def end(self) -> float:
        """Seconds since the epoch of the last reading."""
        return (max(self._buckets) + 1) * BUCKET_S

    def between(self, begin: float, end: float) -> tuple[CardHeat, ...]:
        """Every card over some time, by index; empty if there is no reading in it."""
        seen: dict[int, list[_Bucket]] = {}
        for key in range(int(begin // BUCKET_S), int(end // BUCKET_S) + 1):
            for gpu, bucket in self._buckets.get(key, {}).items():
                seen.setdefault(gpu, []).append(bucket)
        return tuple(self._heat(gpu, seen[gpu]) for gpu in sorted(seen))

    def _heat(self, gpu: int, buckets: list[_Bucket]) -> CardHeat:
        throttled = [bucket for bucket in buckets if bucket.reasons]
        return CardHeat(
            gpu=gpu,
            peak_temperature_celsius=max(_known(b.temperature for b in buckets), default=None),
            headroom_celsius=min(_known(b.headroom for b in buckets), default=None),
            thermal_reasons=tuple(sorted({name for b in throttled for name in b.reasons})),
            lowest_sm_clock_mhz=min(_known(b.clock for b in throttled), default=None),
            sm_clock_max_mhz=self._clock_max.get(gpu),
        )

    def _take(
        self, columns: _Columns, row: list[str], zone: tzinfo | None, counted: dict[int, float]
    ) -> None:
        moment = _moment(columns.text(row, _TIME), zone)
        index = columns.number(row, _GPU)
        if moment is None or index is None:
            return
        gpu = int(index)
        bucket = self._buckets.setdefault(int(moment // BUCKET_S), {}).setdefault(gpu, _Bucket())
        bucket.temperature = max(
            _known((bucket.temperature, columns.number(row, _TEMPERATURE))), default=None
        )
        bucket.headroom = min(
            _known((bucket.headroom, columns.number(row, _HEADROOM))), default=None
        )
        reasons = columns.thermal_reasons(row)
        thermal_time = columns.number(row, _THERMAL_TIME)
        if thermal_time is not None:
            if thermal_time > counted.get(gpu, thermal_time) and not reasons:
                # Shorter than the polling of the bits: only the driver's counter saw it.
                reasons = frozenset({"thermal"})
            counted[gpu] = thermal_time
        if reasons:
            bucket.reasons |= reasons
            bucket.clock = min(_known((bucket.clock, columns.number(row, _CLOCK))), default=None)
        clock_max = columns.number(row, _CLOCK_MAX)
        if clock_max is not None:
            self._clock_max[gpu] = clock_max


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


def _known(values: Iterable[float | None]) -> Iterator[float]:
    return (value for value in values if value is not None)
