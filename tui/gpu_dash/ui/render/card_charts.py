"""What the cards do over time: temperature, clock, power."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu_dash.agent.store import GpuPoint, GpuTrack
from gpu_dash.model.gpu import GpuSample
from gpu_dash.model.offered import highest, lowest, total
from gpu_dash.ui.render.braille import Layer
from gpu_dash.ui.render.chart import Chart, now_and_peak
from gpu_dash.ui.render.format import count, short, whole
from gpu_dash.ui.render.row import Role, Run
from gpu_dash.ui.render.scale import Scale
from gpu_dash.ui.render.series import Gather, Series
from gpu_dash.ui.render.timeaxis import TimeAxis
from gpu_dash.ui.view import View

_LINES_OF_THEIR_OWN = 4
"""So many cards have a line each; of more, those that throttled on the axis have one, and of the
others the highest and the lowest value are drawn."""
_ROLES = (Role.ACCENT, Role.SECOND, Role.GOOD, Role.PLAIN)
_THROTTLED_OF_MANY = Role.SECOND
_EDGE = Role.PLAIN
_LIMIT_IN_SIGHT_CELSIUS = 10.0
"""A card this close to its limit brings the limit into the chart."""

CardLines = dict[int, list[float | None]]


@dataclass(frozen=True)
class Quantity:
    """Something that each card has a line of."""

    title: str
    unit: str
    grid: float
    """Distance of the values at which the scale may end."""
    of_point: Callable[[GpuPoint], float | None]
    of_sample: Callable[[GpuSample], float | None]
    high_is_bad: bool
    gather: Gather


TEMPERATURE = Quantity(
    title="temp °C",
    unit="°",
    grid=10.0,
    of_point=lambda point: point.temperature_celsius,
    of_sample=lambda sample: sample.temperature_celsius,
    high_is_bad=True,
    gather=Gather.HIGHEST,
)
SM_CLOCK = Quantity(
    title="SM MHz",
    unit="",
    grid=500.0,
    of_point=lambda point: point.sm_clock_mhz,
    of_sample=lambda sample: sample.sm_clock_mhz,
    high_is_bad=False,
    gather=Gather.LOWEST,
)


class CardSeries:
    """One quantity of every card on the time axis."""

    def __init__(self, value: Callable[[GpuPoint], float | None], gather: Gather) -> None:
        self._value = value
        self._gather = gather
        self._series: dict[int, Series[GpuPoint]] = {}

    def on(self, axis: TimeAxis, tracks: list[GpuTrack]) -> CardLines:
        """The columns of each card."""
        lines: CardLines = {}
        for track in tracks:
            gpu = track.info.gpu
            series = self._series.setdefault(gpu, Series(self._value, self._gather))
            lines[gpu] = series.on(axis, track.history)
        return lines


class CardLinesPlot:
    """A quantity of each card: a line per card, or the two edges of them all; the throttled
    stretches stand out, and the worst cards are named."""

    def __init__(self, quantity: Quantity) -> None:
        self._quantity = quantity
        self._series = CardSeries(quantity.of_point, quantity.gather)

    def chart(self, view: View, axis: TimeAxis, height: int) -> Chart:
        tracks = view.store.gpu_tracks()
        lines = self._series.on(axis, tracks)
        top = highest(highest(line) for line in lines.values())
        bottom = lowest(lowest(line) for line in lines.values())
        limit = self._limit(tracks)
        if limit is not None and top is not None and top > limit - _LIMIT_IN_SIGHT_CELSIUS:
            top = max(top, limit)
        scale = Scale.around(bottom, top, self._quantity.grid)
        roles = _roles_of_lines(view, axis, tracks)
        layers = self._edges(
            axis, height, [line for gpu, line in lines.items() if gpu not in roles], scale
        )
        alarm = Layer(axis.width, height, Role.ALARM)
        for gpu, role in roles.items():
            layers.append(Layer(axis.width, height, role).line(lines[gpu], scale))
            alarm.line(throttled_part(view, axis, gpu, lines[gpu]), scale)
        return Chart(
            scale=scale,
            labels=("", "") if top is None else (short(scale.high), short(scale.low)),
            layers=[*layers, alarm],
            beside=[[(self._quantity.title, Role.DIM)], *self._named(view, tracks, roles)],
            level=limit,
        )

    def _limit(self, tracks: list[GpuTrack]) -> float | None:
        if self._quantity is not TEMPERATURE:
            return None
        return lowest(track.info.nearest_limit_celsius for track in tracks)

    def _edges(
        self, axis: TimeAxis, height: int, lines: list[list[float | None]], scale: Scale
    ) -> list[Layer]:
        """The best and the worst of the cards without a line of their own."""
        if not lines:
            return []
        columns = list(zip(*lines, strict=True))
        lows = [lowest(column) for column in columns]
        highs = [highest(column) for column in columns]
        worst, best = (highs, lows) if self._quantity.high_is_bad else (lows, highs)
        return [
            Layer(axis.width, height, Role.DIM).line(best, scale),
            Layer(axis.width, height, _EDGE).line(worst, scale),
        ]

    def _named(self, view: View, tracks: list[GpuTrack], roles: dict[int, Role]) -> list[list[Run]]:
        """The cards by name: throttled ones, those with a line of their own, then from the worst
        on; of equal ones the hottest first. A name has the colour of its line."""
        entries: list[tuple[tuple[bool, bool, float, float], list[Run]]] = []
        for track in tracks:
            sample = track.latest
            value = None if sample is None else self._quantity.of_sample(sample)
            if sample is None or value is None:
                continue
            throttle = track.worst_throttle
            calm = throttle is None or not throttle.kind.is_alarm
            line_role = roles.get(track.info.gpu, _EDGE)
            value_role = line_role if calm else Role.ALARM
            if view.gpu_is_stale(track):
                line_role = value_role = Role.DIM
            name = f"{track.info.gpu:>2}"
            text = f"{' ' if calm else '▲'}{whole(value)}{self._quantity.unit}"
            has_line = len(tracks) > _LINES_OF_THEIR_OWN and track.info.gpu in roles
            badness = -value if self._quantity.high_is_bad else value
            order = (calm, not has_line, badness, -(sample.temperature_celsius or 0.0))
            entries.append((order, [(name, line_role), (text, value_role)]))
        entries.sort(key=lambda entry: entry[0])
        return [runs for _, runs in entries]


class PowerPlot:
    """What all cards draw together."""

    def __init__(self) -> None:
        self._series = CardSeries(lambda point: point.power_watts, Gather.MEAN)

    def chart(self, view: View, axis: TimeAxis, height: int) -> Chart:
        tracks = view.store.gpu_tracks()
        lines = self._series.on(axis, tracks)
        was_there = any(
            point.power_watts is not None for track in tracks for point in track.history[:1]
        )
        watts = [total(column) for column in zip(*lines.values(), strict=True)]
        peak = highest(watts)
        scale = Scale.from_zero(peak)
        now = total(
            track.latest.power_watts
            for track in tracks
            if track.latest is not None and not view.gpu_is_stale(track)
        )
        return Chart(
            scale=scale,
            labels=("", "") if peak is None else (short(scale.high), "0"),
            layers=[Layer(axis.width, height, Role.PLAIN).line(watts, scale)],
            beside=[
                [("power W, all", Role.DIM)],
                *now_and_peak(now, peak, count, Role.PLAIN, was_there=was_there),
            ],
        )


def _roles_of_lines(view: View, axis: TimeAxis, tracks: list[GpuTrack]) -> dict[int, Role]:
    """The cards that have a line of their own, and its role; those that throttled come last, so
    that no other line covers theirs."""
    throttled = {
        span.gpu
        for span in view.store.throttle_spans
        if span.kind.is_alarm and (span.ended_at is None or span.ended_at >= axis.start)
    }
    gpus = [track.info.gpu for track in tracks]
    if len(gpus) > _LINES_OF_THEIR_OWN:
        return {gpu: _THROTTLED_OF_MANY for gpu in gpus if gpu in throttled}
    roles = dict(zip(gpus, _ROLES, strict=False))
    return {gpu: roles[gpu] for gpu in sorted(gpus, key=lambda gpu: gpu in throttled)}


def throttled_part(
    view: View, axis: TimeAxis, gpu: int, values: list[float | None]
) -> list[float | None]:
    """A card's line where it throttled with alarm, and nothing elsewhere."""
    part: list[float | None] = [None] * len(values)
    for span in view.store.throttle_spans:
        if span.gpu == gpu and span.kind.is_alarm:
            first = max(0, axis.dot(span.began_at))
            end = span.ended_at if span.ended_at is not None else view.now
            behind = max(first, min(axis.dots, axis.dot(end) + 1))
            part[first:behind] = values[first:behind]
    return part
