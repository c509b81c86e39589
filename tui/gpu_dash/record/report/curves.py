"""The curves of the charts and the figures of each card, read row by row from the CSV files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu_dash.analysis.percentile import percentile
from gpu_dash.analysis.token_flow import TokenFlow, first_and_last_token
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.load import Outcome
from gpu_dash.model.offered import highest, lowest
from gpu_dash.record.read_table import Record
from gpu_dash.record.reader import SessionReader
from gpu_dash.record.report.series import Series, TimeSpan
from gpu_dash.record.report.story import Window

_READ = (
    "time_s",
    "gpu",
    "name",
    "temperature_celsius",
    "temperature_max_celsius",
    "power_watts",
    "power_max_watts",
    "power_limit_watts",
    "sm_clock_mhz",
    "sm_clock_min_mhz",
    "headroom_celsius",
    "memory_used_bytes",
    "throttle_thermal_s",
    "throttle_power_s",
    "energy_joules",
)
LONGEST_REQUEST_S = 86400.0
LONGEST_SESSION_S = 366 * 86400.0
"""A request that took longer, or was sent outside of the session or after this, is none that we
sent: the file was damaged or made by hand."""


class _Counter:
    """What a counter advanced; one that starts anew is not taken for a step back."""

    def __init__(self) -> None:
        self.advanced: float | None = None
        self._last: float | None = None

    def add(self, value: float | None) -> None:
        if value is None:
            return
        if self._last is not None:
            self.advanced = (self.advanced or 0.0) + max(0.0, value - self._last)
        self._last = value


@dataclass
class CardCurves:
    """One card over the shown time; mean power and lowest clock in the windows of the steps, for
    a card without work clocks down by itself."""

    info: GpuInfo
    temperature: Series
    power: Series
    clock: Series
    power_limit: Series
    min_headroom_celsius: float | None = None
    mean_power_watts: float | None = None
    lowest_clock_mhz: float | None = None
    peak_memory_used_bytes: int | None = None
    thermal: _Counter = field(default_factory=_Counter)
    power_throttle: _Counter = field(default_factory=_Counter)
    energy: _Counter = field(default_factory=_Counter)
    _power_sum: float = 0.0
    _power_readings: int = 0

    @classmethod
    def of(cls, info: GpuInfo, span: TimeSpan) -> CardCurves:
        """A card without a reading yet."""
        return cls(info, Series(span), Series(span), Series(span), Series(span))

    def add(self, at_s: float, record: Record, *, is_loaded: bool) -> None:
        """Take a row of ``gpu.csv`` that lies in the shown time.

        Args:
            at_s: seconds since the session's start.
            record: the row.
            is_loaded: the window of a step was open.
        """
        value = record.get
        power = value("power_watts")
        self.temperature.add(at_s, value("temperature_celsius"), value("temperature_max_celsius"))
        self.power.add(at_s, power, value("power_max_watts"))
        self.clock.add(at_s, value("sm_clock_mhz"), value("sm_clock_min_mhz"))
        self.power_limit.add(at_s, value("power_limit_watts"))
        self.min_headroom_celsius = lowest((self.min_headroom_celsius, value("headroom_celsius")))
        memory = value("memory_used_bytes")
        if memory is not None:
            self.peak_memory_used_bytes = highest((self.peak_memory_used_bytes, int(memory)))
        if is_loaded:
            clock = lowest((value("sm_clock_mhz"), value("sm_clock_min_mhz")))
            self.lowest_clock_mhz = lowest((self.lowest_clock_mhz, clock))
        if is_loaded and power is not None:
            self._power_sum += power
            self._power_readings += 1
            self.mean_power_watts = self._power_sum / self._power_readings
        self.thermal.add(value("throttle_thermal_s"))
        self.power_throttle.add(value("throttle_power_s"))
        self.energy.add(value("energy_joules"))


def read_cards(
    reader: SessionReader, cards: Sequence[GpuInfo], span: TimeSpan, windows: Sequence[Window]
) -> list[CardCurves]:
    """The curves of these cards; of all cards in ``gpu.csv`` where none are known.

    Args:
        reader: of the session.
        cards: the server's.
        span: what is shown.
        windows: of the steps, in the order of time.

    Raises:
        RecordError: the file cannot be read.
    """
    curves = {info.gpu: CardCurves.of(info, span) for info in cards}
    openings = [window.opens_s for window in windows]
    for record in reader.records("gpu.csv", _READ):
        at_s, gpu = record["time_s"], record["gpu"]
        if at_s is None or gpu is None or not span.start_s <= at_s <= span.end_s:
            continue
        if not cards and gpu not in curves:
            curves[gpu] = CardCurves.of(GpuInfo(gpu=gpu, name=record["name"] or ""), span)
        if gpu in curves:
            latest = bisect_right(openings, at_s) - 1
            is_loaded = latest >= 0 and at_s <= windows[latest].closes_s
            curves[gpu].add(at_s, record, is_loaded=is_loaded)
    return [curves[gpu] for gpu in sorted(curves)]


@dataclass
class LoadCurves:
    """What the requests met over the shown time."""

    flow: TokenFlow
    throughput: Series
    """Mean of each column, or of each second where those are longer."""
    throughput_range: Series
    """From the slowest second to the fastest."""
    ttft_median: Series
    ttft: Series
    """From the fastest to the slowest."""
    failed: dict[int, int]
    """Failed requests by column."""
    usage_missing: bool = False
    """The server sent no ``usage`` for some answers: their tokens are chunks."""

    @classmethod
    def over(cls, span: TimeSpan) -> LoadCurves:
        """Curves without a request yet."""
        return cls(TokenFlow(), Series(span), Series(span), Series(span), Series(span), {})


def read_load(reader: SessionReader, span: TimeSpan) -> LoadCurves:
    """The curves of the load.

    Args:
        reader: of the session.
        span: what is shown.

    Raises:
        RecordError: the file cannot be read.
    """
    curves = LoadCurves.over(span)
    end_s = min(max(reader.duration_s, span.end_s), LONGEST_SESSION_S)
    ttfts: dict[int, list[float]] = {}
    for reported_at, request in reader.requests():
        first, last = first_and_last_token(request, reported_at)
        if not 0 <= request.sent <= end_s or not 0 <= last - request.sent <= LONGEST_REQUEST_S:
            continue
        curves.flow.add(request, reported_at)
        if request.outcome is Outcome.OK and request.usage_missing:
            curves.usage_missing = True
        if request.ttft_s is not None and (column := span.column(first)) is not None:
            ttfts.setdefault(column, []).append(request.ttft_s)
            curves.ttft.add(first, request.ttft_s)
        if request.outcome is not Outcome.OK and (column := span.column(last)) is not None:
            curves.failed[column] = curves.failed.get(column, 0) + 1
    for column, values in ttfts.items():
        curves.ttft_median.add(span.middle_s(column), percentile(values, 50))
    for second, tokens in curves.flow.per_second():
        curves.throughput_range.add(second + 0.5, tokens)
    for column, low, high in curves.throughput_range.points():
        middle = span.middle_s(column)
        start, end = middle - span.column_s / 2, middle + span.column_s / 2
        mean = low if low == high else curves.flow.tokens(start, end) / span.column_s
        curves.throughput.add(middle, mean)
    return curves


@dataclass
class ServerCurves:
    """What the server said of itself in ``/metrics``."""

    running: Series
    waiting: Series

    @property
    def was_read(self) -> bool:
        """It offers them."""
        return self.running.highest is not None or self.waiting.highest is not None


def read_server(reader: SessionReader, span: TimeSpan) -> ServerCurves:
    """The curves of the server.

    Raises:
        RecordError: the file cannot be read.
    """
    curves = ServerCurves(Series(span), Series(span))
    columns = ("time_s", "running_requests", "waiting_requests")
    for record in reader.records("server.csv", columns):
        at_s = record["time_s"]
        if at_s is not None:
            curves.running.add(at_s, record["running_requests"])
            curves.waiting.add(at_s, record["waiting_requests"])
    return curves
