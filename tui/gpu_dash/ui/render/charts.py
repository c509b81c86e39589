"""The charts: throughput, time to first token, temperature, clock, power on one time axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from gpu_dash.agent.store import GpuPoint, GpuTrack, LoadPoint, ServerPoint
from gpu_dash.model.offered import highest, lowest, total
from gpu_dash.ui.render.braille import Layer, Values, draw
from gpu_dash.ui.render.format import count, latency, short, whole
from gpu_dash.ui.render.lanes import STEP_LINE, Cells, lanes
from gpu_dash.ui.render.layout import split_charts
from gpu_dash.ui.render.row import Role, Row, Run
from gpu_dash.ui.render.series import Gather, P, Series
from gpu_dash.ui.render.timeaxis import TimeAxis
from gpu_dash.ui.view import STALE_S, View

_SCALE = 6
"""Cells left of a chart: its scale."""
_LINES_OF_THEIR_OWN = 4
"""So many cards have a line each; more are a band with the extreme ones named."""
_BETWEEN_FIRST_TOKENS_S = 15.0
"""At a low concurrency first tokens are far apart without anything being wrong."""
_CARD_ROLES = (Role.ACCENT, Role.SECOND, Role.GOOD, Role.PLAIN)


@dataclass
class Chart:
    """One chart, ready to be drawn: its scale, its layers, what stands beside it."""

    low: float
    high: float
    layers: list[Layer]
    beside: list[list[Run]]
    """Right of it: a title, then what is now, row by row."""
    scale: tuple[str, str]
    """Labels of the highest and the lowest value."""
    level: float | None = None
    """A value that is marked across."""


@dataclass
class _CardSeries:
    """The series of one card."""

    temperature: Series[GpuPoint] = field(
        default_factory=lambda: Series(lambda point: point.temperature_celsius, Gather.HIGHEST)
    )
    clock: Series[GpuPoint] = field(
        default_factory=lambda: Series(lambda point: point.sm_clock_mhz, Gather.LOWEST)
    )
    power: Series[GpuPoint] = field(
        default_factory=lambda: Series(lambda point: point.power_watts, Gather.MEAN)
    )


class Charts:
    """All charts of the dashboard; keeps what was gathered for the page of the axis."""

    def __init__(self) -> None:
        self._throughput: Series[LoadPoint] = Series(
            lambda point: point.output_tokens_per_s, Gather.MEAN
        )
        self._generation: Series[ServerPoint] = Series(
            lambda point: point.generation_tokens_per_s, Gather.MEAN
        )
        self._ttft: Series[LoadPoint] = Series(
            lambda point: point.ttft_s, Gather.HIGHEST, gap_s=_BETWEEN_FIRST_TOKENS_S
        )
        self._cards: dict[int, _CardSeries] = {}

    def rows(self, view: View, width: int, height: int) -> list[Row]:
        """The panel."""
        heights, axis_rows = split_charts(height)
        beside = 12 if width < 100 else 16
        axis = TimeAxis.around(
            view.now,
            view.window_s,
            width - _SCALE - beside,
            origin=view.origin,
            earliest=_earliest(view),
        )
        builders = [self._throughput_chart, self._ttft_chart, self._temperature_chart,
                    self._clock_chart, self._power_chart]  # fmt: skip
        if len(heights) < 3:
            builders = [self._throughput_chart, self._temperature_chart]
        rows: list[Row] = []
        for build, its_height in zip(builders, heights, strict=False):
            rows += _drawn(view, axis, build(view, axis, its_height), its_height, width)
        for label, cells in lanes(view, axis, axis_rows):
            row = Row([(label.rjust(_SCALE - 1) + " ", Role.DIM)])
            rows.append(row.extend(draw([], 0, cells)).fit(width))
        return rows

    # -- what each chart shows -----------------------------------------------------------------

    def _throughput_chart(self, view: View, axis: TimeAxis, height: int) -> Chart:
        store = view.store
        values = self._throughput.on(axis, store.load_history)
        source = ""
        now = _newest(view, store.load_history, lambda _: view.output_tokens_per_s, STALE_S)
        if not any(values):
            generated = self._generation.on(axis, store.server_history)
            if any(generated):
                values, source = generated, " server"
                now = _newest(
                    view,
                    store.server_history,
                    lambda point: point.generation_tokens_per_s,
                    STALE_S,
                )
        high = _nice(highest(values))
        return Chart(
            low=0.0,
            high=high,
            layers=[Layer(axis.width, height, Role.GOOD).line(values, 0.0, high)],
            beside=[
                [(f"tok/s{source}", Role.DIM)],
                *_now_and_peak(now, highest(values), count, Role.GOOD),
            ],
            scale=(short(high), "0") if highest(values) is not None else ("", ""),
        )

    def _ttft_chart(self, view: View, axis: TimeAxis, height: int) -> Chart:
        values = self._ttft.on(axis, view.store.load_history)
        high = _nice(highest(values))
        now = _newest(
            view,
            view.store.load_history,
            lambda point: point.ttft_s,
            _BETWEEN_FIRST_TOKENS_S,
        )
        unit, factor = ("ms", 1000.0) if high < 1 else ("s", 1.0)
        return Chart(
            low=0.0,
            high=high,
            layers=[Layer(axis.width, height, Role.ACCENT).line(values, 0.0, high)],
            beside=[
                [(f"TTFT {unit}", Role.DIM)],
                *_now_and_peak(now, highest(values), latency, Role.ACCENT),
            ],
            scale=(short(high * factor), "0") if highest(values) is not None else ("", ""),
        )

    def _temperature_chart(self, view: View, axis: TimeAxis, height: int) -> Chart:
        tracks = view.store.gpu_tracks()
        lines = {
            track.info.gpu: self._card(track).temperature.on(axis, track.history)
            for track in tracks
        }
        hottest, coolest = _span(lines.values())
        limit = min(
            (track.info.nearest_limit_celsius for track in tracks
             if track.info.nearest_limit_celsius is not None),
            default=None,
        )  # fmt: skip
        if limit is not None and hottest is not None and hottest > limit - 10:
            hottest = max(hottest, limit)
        low, high = _around(coolest, hottest, 10.0)
        return Chart(
            low=low,
            high=high,
            layers=_card_layers(view, axis, height, lines, low, high, extreme=max),
            beside=[
                [("temp °C", Role.DIM)],
                *_named(
                    view,
                    tracks,
                    lambda track: _latest(view, track, "temperature_celsius"),
                    "°",
                    highest_first=True,
                ),
            ],
            scale=(short(high), short(low)),
            level=limit,
        )

    def _clock_chart(self, view: View, axis: TimeAxis, height: int) -> Chart:
        tracks = view.store.gpu_tracks()
        lines = {
            track.info.gpu: self._card(track).clock.on(axis, track.history) for track in tracks
        }
        fastest, slowest = _span(lines.values())
        low, high = _around(slowest, fastest, 250.0)
        return Chart(
            low=low,
            high=high,
            layers=_card_layers(view, axis, height, lines, low, high, extreme=min),
            beside=[
                [("SM MHz", Role.DIM)],
                *_named(
                    view,
                    tracks,
                    lambda track: _latest(view, track, "sm_clock_mhz"),
                    "",
                    highest_first=False,
                ),
            ],
            scale=(short(high), short(low)),
        )

    def _power_chart(self, view: View, axis: TimeAxis, height: int) -> Chart:
        tracks = view.store.gpu_tracks()
        lines = [self._card(track).power.on(axis, track.history) for track in tracks]
        watts = [total(column) for column in zip(*lines, strict=True)]
        high = _nice(highest(watts))
        return Chart(
            low=0.0,
            high=high,
            layers=[Layer(axis.width, height, Role.PLAIN).line(watts, 0.0, high)],
            beside=[
                [("power W, all", Role.DIM)],
                *_now_and_peak(_power_now(view), highest(watts), count, Role.PLAIN),
            ],
            scale=(short(high), "0"),
        )

    def _card(self, track: GpuTrack) -> _CardSeries:
        return self._cards.setdefault(track.info.gpu, _CardSeries())


# -- drawing -----------------------------------------------------------------------------------


def _drawn(view: View, axis: TimeAxis, chart: Chart, height: int, width: int) -> list[Row]:
    """A chart with its scale at the left and its values at the right."""
    level_row = None
    if chart.level is not None and chart.low < chart.level <= chart.high:
        share = (chart.level - chart.low) / (chart.high - chart.low)
        level_row = min(height - 1, int((1 - share) * height))
    step_cells = {axis.cell(mark.opened_at) for mark in view.store.step_marks}
    rows = []
    for y in range(height):
        background: Cells = [(" ", Role.PLAIN)] * axis.width
        if y == level_row:
            background = [("╌", Role.DIM)] * axis.width
        for cell in step_cells:
            if 0 <= cell < axis.width:
                background[cell] = (STEP_LINE, Role.DIM)
        label = chart.scale[0] if y == 0 else chart.scale[1] if y == height - 1 else ""
        row = Row([(label.rjust(_SCALE - 1) + ("┤" if label else "│"), Role.DIM)])
        row.extend(draw(chart.layers, y, background))
        beside = chart.beside[y] if y < len(chart.beside) else []
        if height == 2 and y == 1 and len(chart.beside) > 1:
            beside = chart.beside[1]
        rows.append(row.add(" ").extend(beside).fit(width))
    return rows


def _card_layers(
    view: View,
    axis: TimeAxis,
    height: int,
    lines: dict[int, list[float | None]],
    low: float,
    high: float,
    *,
    extreme: object,
) -> list[Layer]:
    """A line per card, or a band with the extreme one; throttled stretches over all in red."""
    layers: list[Layer] = []
    if len(lines) <= _LINES_OF_THEIR_OWN:
        for values, role in zip(lines.values(), _CARD_ROLES, strict=False):
            layers.append(Layer(axis.width, height, role).line(values, low, high))
    else:
        columns = list(zip(*lines.values(), strict=True))
        lows = [lowest(column) for column in columns]
        highs = [highest(column) for column in columns]
        layers.append(Layer(axis.width, height, Role.DIM).band(lows, highs, low, high))
        edge = highs if extreme is max else lows
        layers.append(Layer(axis.width, height, Role.PLAIN).line(edge, low, high))
    alarm = Layer(axis.width, height, Role.ALARM)
    for gpu, values in lines.items():
        throttled = _throttled(view, axis, gpu)
        if throttled:
            alarm.line([v if x in throttled else None for x, v in enumerate(values)], low, high)
    return [*layers, alarm]


def _throttled(view: View, axis: TimeAxis, gpu: int) -> set[int]:
    """Columns of dots in which a card throttled with alarm."""
    columns: set[int] = set()
    for span in view.store.throttle_spans:
        if span.gpu == gpu and span.kind.is_alarm:
            end = span.ended_at if span.ended_at is not None else view.now
            columns.update(
                range(max(0, axis.dot(span.began_at)), min(axis.dots, axis.dot(end) + 1))
            )
    return columns


def _named(
    view: View, tracks: Sequence[GpuTrack], value: object, unit: str, *, highest_first: bool
) -> list[list[Run]]:
    """The cards by name beside a chart: throttled ones first, then from the worst on."""
    assert callable(value)
    known = [(track, value(track)) for track in tracks]
    present = [(track, reading) for track, reading in known if reading is not None]
    own = len(tracks) <= _LINES_OF_THEIR_OWN
    roles = {
        track.info.gpu: role if own else Role.PLAIN
        for track, role in zip(tracks, [*_CARD_ROLES, *([Role.PLAIN] * len(tracks))], strict=False)
    }

    def order(item: tuple[GpuTrack, float]) -> tuple[bool, float]:
        track, reading = item
        throttle = track.worst_throttle
        calm = throttle is None or not throttle.kind.is_alarm
        return (calm, -reading if highest_first else reading)

    named: list[list[Run]] = []
    for track, reading in sorted(present, key=order):
        calm = order((track, reading))[0]
        role = roles[track.info.gpu] if calm else Role.ALARM
        if view.gpu_is_stale(track):
            role = Role.DIM
        sign = " " if calm else "▲"
        named.append([(f"{track.info.gpu:>2}{sign}{whole(reading)}{unit}", role)])
    return named


def _now_and_peak(
    now: float | None, peak: float | None, text: Callable[[float | None], str], role: Role
) -> list[list[Run]]:
    """What is now, and the highest on the axis; words where there are no data."""
    if peak is None:
        return [[("no data yet", Role.DIM)]]
    return [
        [(text(now), role if now is not None else Role.DIM)],
        [(f"peak {text(peak)}", Role.DIM)],
    ]


def _latest(view: View, track: GpuTrack, name: str) -> float | None:
    sample = track.latest
    return None if sample is None else getattr(sample, name)


# -- numbers -----------------------------------------------------------------------------------


def _earliest(view: View) -> float:
    """Where the data begin."""
    store = view.store
    firsts = [track.history[0].at for track in store.gpus.values() if track.history]
    if store.load_history:
        firsts.append(store.load_history[0].at)
    if store.server_history:
        firsts.append(store.server_history[0].at)
    return min(firsts, default=view.now)


def _newest(
    view: View, points: Sequence[P], value: Callable[[P], float | None], fresh_s: float
) -> float | None:
    """The newest value, unless it is too old to be called one."""
    for point in reversed(points):
        if view.is_lost or view.now - point.at > fresh_s:
            break
        newest = value(point)
        if newest is not None:
            return newest
    return None


def _power_now(view: View) -> float | None:
    return total(
        track.latest.power_watts
        for track in view.store.gpus.values()
        if track.latest is not None and not view.gpu_is_stale(track)
    )


def _span(lines: Iterable[Values]) -> tuple[float | None, float | None]:
    """Highest and lowest of all."""
    all_lines = list(lines)
    return (
        highest(highest(line) for line in all_lines),
        lowest(lowest(line) for line in all_lines),
    )


def _nice(top_value: float | None) -> float:
    """The top of a scale from 0: 1, 2, 2.5 or 5 times a power of ten."""
    if top_value is None or top_value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(top_value))
    return next(size * top for top in (1.0, 2.0, 2.5, 5.0, 10.0) if size * top >= top_value)


def _around(
    bottom_value: float | None, top_value: float | None, grid: float
) -> tuple[float, float]:
    """A scale around values, on a grid, and never flat."""
    if bottom_value is None or top_value is None:
        return 0.0, grid
    low = math.floor(bottom_value / grid) * grid
    high = math.ceil(top_value / grid) * grid
    return low, max(high, low + grid)
