"""The panels of the cards: temperature with the limits, power, clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpu_dash.model.offered import highest, lowest
from gpu_dash.record.report.axis import around, from_zero
from gpu_dash.record.report.curves import CardCurves
from gpu_dash.record.report.series import Series, merged
from gpu_dash.record.report.style import CARD_STYLES
from gpu_dash.record.report.time_chart import Line, Panel, Rule

STANDING_OUT = 4
"""Of more cards than there are colours, so many have a line of their own."""
STROKE_S = 6.0
"""Columns longer than this hold so many readings that a line is their mean, and their range is
shaded: a stroke in each column would hide the other cards."""
NEAR_CELSIUS = 40.0
"""A limit that is further away than this does not stretch the scale."""
SHOWN_POWER_LIMITS = 3


def card_panels(cards: Sequence[CardCurves]) -> list[Panel]:
    """One panel per figure, with a line per card.

    Args:
        cards: the server's, at least one.
    """
    chosen = _with_lines(cards)
    limits = _limits(cards)
    temperatures = [value for card in cards for value in _ends(card.temperature)]
    top = highest(temperatures)
    near = [limit for limit, _ in limits if top is not None and limit - top < NEAR_CELSIUS]
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
            [
                Rule(limit, f"limit {limit} W")
                for limit in sorted(power_limits)[:SHOWN_POWER_LIMITS]
            ],
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
