"""The charts of a session on one time axis: load, throttles, cards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpu_dash.model.gpu import ThrottleKind
from gpu_dash.model.offered import highest, lowest
from gpu_dash.record.report.axis import around, from_zero
from gpu_dash.record.report.curves import CardCurves, LoadCurves
from gpu_dash.record.report.markup import Markup
from gpu_dash.record.report.series import Series, TimeSpan, merged
from gpu_dash.record.report.story import Story, Throttle, Window
from gpu_dash.record.report.style import CARD_STYLES
from gpu_dash.record.report.time_chart import Band, Flag, Lane, Line, Panel, Rule, time_chart
from gpu_dash.record.words import clock, latency, number

STANDING_OUT = 4
"""Of more cards than there are colours, so many have a line of their own."""
STROKE_S = 6.0
"""Columns longer than this hold so many readings that a line is their mean and their range is
shaded: a stroke in each column would hide the other cards."""
LANES = 16
_KINDS = tuple(reversed(ThrottleKind))
"""What alarms most is drawn last, over the others."""


def session_charts(
    span: TimeSpan,
    story: Story,
    load: LoadCurves,
    cards: Sequence[CardCurves],
    numbers: dict[int, int],
) -> Markup:
    """The picture.

    Args:
        span: what it shows of the session.
        story: what happened.
        load: what the requests met.
        cards: the server's.
        numbers: of the errors that are marked, by their place in the story's findings.
    """
    panels = [_throughput(load), _ttft(load)]
    if cards:
        panels += _card_panels(cards)
    return time_chart(
        span,
        panels,
        steps=_step_bands(story.windows, span),
        shades=_joined_bands(story.alarms, span),
        lanes=_lanes(story.throttles, cards, span),
        flags=[
            Flag(
                at_s=story.findings[place].at_s,
                label=f"{mark}",
                words=f"{clock(story.findings[place].at_s)} {story.findings[place].message}",
            )
            for place, mark in numbers.items()
        ],
    )


def _throughput(load: LoadCurves) -> Panel:
    low, high = from_zero([load.throughput_range.highest])
    failed = [
        (load.throughput.span.middle_s(column), f"{count} failed")
        for column, count in sorted(load.failed.items())
    ]
    return Panel(
        title="Throughput, output tokens/s"
        + (f"   ▲ failed requests: {sum(load.failed.values()):,}" if failed else ""),
        low=low,
        high=high,
        lines=[
            Line(load.throughput_range, "a0", is_area=True),
            Line(load.throughput, "c0"),
        ],
        marks=failed,
    )


def _ttft(load: LoadCurves) -> Panel:
    low, high = from_zero([load.ttft.highest])
    return Panel(
        title="Time to first token, s",
        low=low,
        high=high,
        lines=[
            Line(load.ttft, "a1", "fastest to slowest", is_area=True),
            Line(load.ttft_median, "c1", "median"),
        ],
    )


# -- cards -------------------------------------------------------------------------------------


def _card_panels(cards: Sequence[CardCurves]) -> list[Panel]:
    chosen = _with_lines(cards)
    limits = _limits(cards)
    temperatures = [value for card in cards for value in _ends(card.temperature)]
    top = highest(temperatures)
    near = [limit for limit, _ in limits if top is not None and limit - top < 40]
    power_limits = {round(value) for card in cards for value in _ends(card.power_limit) if value}
    powers = [card.power.highest for card in cards]
    maxima = {card.info.sm_clock_max_mhz for card in cards} - {None}
    clocks = [value for card in cards for value in _ends(card.clock)]
    return [
        Panel(
            "Temperature, °C",
            *around([*temperatures, *near], 10.0),
            _lines(cards, chosen, lambda card: card.temperature),
            [Rule(limit, words) for limit, words in limits],
        ),
        Panel(
            "Power, W",
            *from_zero([*powers, *power_limits]),
            _lines(cards, chosen, lambda card: card.power),
            [Rule(limit, f"limit {limit} W") for limit in sorted(power_limits)[:3]],
        ),
        Panel(
            "SM clock, MHz",
            *around([*clocks, *maxima], 200.0),
            _lines(cards, chosen, lambda card: card.clock),
            [Rule(limit, f"maximum {limit:.0f} MHz") for limit in maxima if limit is not None],
        ),
    ]


def _with_lines(cards: Sequence[CardCurves]) -> list[CardCurves]:
    """The cards with a line of their own: all, or those that throttled most and got hottest."""
    if len(cards) <= CARD_STYLES:
        return list(cards)

    def stands_out(card: CardCurves) -> tuple[float, float]:
        return card.thermal.advanced or 0.0, card.temperature.highest or 0.0

    outstanding = sorted(cards, key=stands_out, reverse=True)[:STANDING_OUT]
    return sorted(outstanding, key=lambda card: card.info.gpu)


def _lines(
    cards: Sequence[CardCurves],
    chosen: Sequence[CardCurves],
    of: Callable[[CardCurves], Series],
) -> list[Line]:
    is_dense = cards[0].temperature.span.column_s > STROKE_S
    lines = []
    if len(chosen) < len(cards):
        everything = merged([of(card) for card in cards])
        lines.append(Line(everything, "a6", f"all {len(cards)} cards", is_area=True))
    elif is_dense:
        lines += [Line(of(card), f"a{place}", is_area=True) for place, card in enumerate(chosen)]
    for place, card in enumerate(chosen):
        series = of(card).mean() if is_dense else of(card)
        lines.append(Line(series, f"c{place}", f"gpu {card.info.gpu}"))
    return lines


def _limits(cards: Sequence[CardCurves]) -> list[tuple[float, str]]:
    """The lowest of each kind of limit over the cards."""
    kinds = (
        ("maximum", [card.info.max_operating_temperature_celsius for card in cards]),
        ("slowdown", [card.info.slowdown_temperature_celsius for card in cards]),
        ("shutdown", [card.info.shutdown_temperature_celsius for card in cards]),
    )
    return [
        (limit, f"{name} {limit:.0f} °C")
        for name, limits in kinds
        if (limit := lowest(limits)) is not None
    ]


def _ends(series: Series) -> tuple[float | None, float | None]:
    return series.lowest, series.highest


# -- marks -------------------------------------------------------------------------------------


def _step_bands(windows: Sequence[Window], span: TimeSpan) -> list[Band]:
    """The windows of the steps; those too short to be told apart are one."""
    bands: list[Band] = []
    for window in windows:
        band = _step(window)
        before = bands[-1] if bands else None
        is_near = before is not None and band.start_s - before.end_s < span.column_s
        if before is not None and is_near and band.end_s - band.start_s < 2 * span.column_s:
            bands[-1] = Band(before.start_s, band.end_s, words="several steps")
        else:
            bands.append(band)
    return bands


def _step(window: Window) -> Band:
    result = window.result
    words = [f"step {window.step} at {window.load}"]
    if result is not None:
        words.append(f"{number(result.output_tokens_per_s, 1)} output tokens/s")
        words.append(f"TTFT {latency(result.ttft_p50_s)} median")
    return Band(window.opens_s, window.closes_s, window.load, ", ".join(words))


def _lanes(
    throttles: Sequence[Throttle], cards: Sequence[CardCurves], span: TimeSpan
) -> list[Lane]:
    """One lane per card, if any throttled; of a host with more, those that did."""
    throttled = {throttle.gpu for throttle in throttles}
    if not throttled:
        return []
    indexes = {card.info.gpu for card in cards} | throttled
    if len(indexes) > LANES:
        indexes = set(sorted(throttled)[:LANES])
    return [
        Lane(
            f"throttle {gpu}",
            [
                band
                for kind in _KINDS
                for band in _joined_bands(
                    [one for one in throttles if one.gpu == gpu and one.kind is kind], span
                )
            ],
        )
        for gpu in sorted(indexes)
    ]


def _joined_bands(throttles: Sequence[Throttle], span: TimeSpan) -> list[Band]:
    """Throttles as stretches; those less than a column apart are one, so that their number is
    bounded by the columns."""
    bands: list[Band] = []
    for one in sorted(throttles, key=lambda one: one.began_s):
        if one.ended_s < span.start_s or one.began_s > span.end_s:
            continue
        if bands and one.began_s - bands[-1].end_s < span.column_s:
            before = bands.pop()
            end = max(before.end_s, one.ended_s)
            bands.append(Band(before.start_s, end, words=before.words, style=before.style))
        else:
            words = f"gpu {one.gpu}: {one.kind.replace('_', ' ')} from {clock(one.began_s)}"
            bands.append(Band(one.began_s, one.ended_s, words=words, style=one.kind.value))
    return bands
