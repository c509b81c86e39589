"""Charts on one time axis, so that cause and effect stand above each other.

From the top: the windows of the steps with their load, the panels, a lane of throttles per card,
the axis. What went wrong runs through all panels: the time in which a card throttled is shaded, an
error is a line with its number in the table of findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from gpu_dash.record.report.axis import Axis, linear_ticks, time_ticks
from gpu_dash.record.report.markup import Markup, element, joined
from gpu_dash.record.report.series import Series, TimeSpan, area_path, line_path
from gpu_dash.record.words import clock, short

WIDTH = 1120.0
_LEFT, _RIGHT = 74.0, 1104.0
_PANEL, _GAP = 92.0, 30.0
_LANE = 11.0
_LABEL_PIXELS = 22.0
_LINE_PIXELS = 15.0
_NEAR_PIXELS = 13.0
"""Two labels nearer than this would stand on each other."""


@dataclass(frozen=True)
class Line:
    """One curve of a panel."""

    series: Series
    style: str
    """Class of the stroke, or of the fill of an area."""
    label: str = ""
    """For the legend; none if empty."""
    is_area: bool = False


@dataclass(frozen=True)
class Rule:
    """A level that a curve is held against: a limit."""

    value: float
    label: str


@dataclass(frozen=True)
class Panel:
    """One chart."""

    title: str
    low: float
    high: float
    lines: Sequence[Line]
    rules: Sequence[Rule] = ()
    ticks: Sequence[tuple[float, str]] | None = None
    """Values with labels; round ones if left out."""
    marks: Sequence[tuple[float, str]] = ()
    """Moments with words, marked at the panel's foot."""


@dataclass(frozen=True)
class Band:
    """A stretch of time."""

    start_s: float
    end_s: float
    label: str = ""
    """What stands in it."""
    words: str = ""
    """What a pointer that rests on it is told."""
    style: str = ""


@dataclass(frozen=True)
class Lane:
    """A row of stretches, as of one card's throttles."""

    label: str
    bands: Sequence[Band]


@dataclass(frozen=True)
class Flag:
    """A moment that runs through all panels."""

    at_s: float
    label: str
    words: str


def time_chart(
    span: TimeSpan,
    panels: Sequence[Panel],
    *,
    steps: Sequence[Band],
    shades: Sequence[Band],
    lanes: Sequence[Lane],
    flags: Sequence[Flag],
) -> Markup:
    """The picture as an ``svg`` element."""
    across = Axis(span.start_s, span.end_s, _LEFT, _RIGHT)
    top = 34.0
    tops = [top + place * (_PANEL + _GAP) + 18 for place in range(len(panels))]
    foot = tops[-1] + _PANEL
    lanes_top = foot + 16
    bottom = lanes_top + len(lanes) * _LANE + (8 if lanes else 0)
    height = bottom + 24
    return element(
        "svg",
        *_steps(across, steps, bottom),
        *_shades(across, shades, tops[0], bottom),
        *(_panel(across, panel, at) for panel, at in zip(panels, tops, strict=True)),
        *_lanes(across, lanes, lanes_top),
        *_flags(across, flags, bottom),
        *_time_axis(across, bottom),
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        class_="chart",
        role="img",
        aria_label="charts over time",
    )


def _steps(across: Axis, steps: Sequence[Band], bottom: float) -> Iterator[Markup]:
    yield _text(_LEFT - 8, 24, "load", "axis end")
    labelled_to = -_LABEL_PIXELS
    for place, band in enumerate(steps):
        x, width = _stretch(across, band)
        shade = element(
            "rect",
            element("title", band.words),
            x=x,
            y=10.0,
            width=width,
            height=bottom - 10,
            class_="step odd" if place % 2 else "step",
        )
        yield shade
        middle = x + width / 2
        if middle - labelled_to >= _LABEL_PIXELS:
            yield _text(middle, 24, band.label, "step-label middle")
            labelled_to = middle


def _shades(across: Axis, shades: Sequence[Band], top: float, bottom: float) -> Iterator[Markup]:
    for band in shades:
        x, width = _stretch(across, band)
        yield element(
            "rect",
            element("title", band.words),
            x=x,
            y=top - 8,
            width=width,
            height=bottom - top + 8,
            class_="shade",
        )


def _panel(across: Axis, panel: Panel, top: float) -> Markup:
    up = Axis(panel.low, panel.high, top + _PANEL, top)
    return element("g", *_panel_parts(across, up, panel, top))


def _panel_parts(across: Axis, up: Axis, panel: Panel, top: float) -> Iterator[Markup]:
    yield _text(_LEFT, top - 7, panel.title, "title")
    yield _legend(panel, top - 7)
    ticks = panel.ticks
    if ticks is None:
        ticks = [(tick, short(tick)) for tick in linear_ticks(panel.low, panel.high)]
    for value, label in ticks:
        y = up.place(value)
        yield _line(_LEFT, y, _RIGHT, y, "grid")
        yield _text(_LEFT - 8, y + 4, label, "axis end")
    for line in panel.lines:
        path = area_path if line.is_area else line_path
        yield element("path", d=path(line.series, across, up), class_=line.style)
    yield from _rules(up, panel.rules)
    for at_s, words in panel.marks:
        x = across.place(at_s)
        yield element(
            "path",
            element("title", words),
            d=f"M{x - 3:.1f} {top + _PANEL:.1f}h6l-3 -7z",
            class_="failed",
        )


def _rules(up: Axis, rules: Sequence[Rule]) -> Iterator[Markup]:
    """The levels; labels that would stand on each other share the place below the lowest."""
    shown = sorted((rule for rule in rules if up.holds(rule.value)), key=lambda rule: -rule.value)
    labels: list[str] = []
    for rule, after in zip_longest(shown, shown[1:]):
        y = up.place(rule.value)
        yield _line(_LEFT, y, _RIGHT, y, "rule")
        labels.append(rule.label)
        if after is None or up.place(after.value) - y >= _LINE_PIXELS:
            yield _text(_LEFT + 5, y + 11, ", ".join(labels), "rule-label")
            labels = []


def _legend(panel: Panel, y: float) -> Markup:
    """Swatches and words behind the title, from the right edge."""
    named = [line for line in panel.lines if line.label]
    widths = [24 + 6.4 * len(line.label) for line in named]
    x = _RIGHT - sum(widths)
    parts = []
    for line, width in zip(named, widths, strict=True):
        parts.append(
            element("rect", x=x, y=y - 6, width=14.0, height=5.0, class_=line.style)
            if line.is_area
            else element("path", d=f"M{x:.1f} {y - 3.5:.1f}h14", class_=line.style)
        )
        parts.append(_text(x + 18, y, line.label, "legend"))
        x += width
    return joined(parts)


def _lanes(across: Axis, lanes: Sequence[Lane], top: float) -> Iterator[Markup]:
    for place, lane in enumerate(lanes):
        y = top + place * _LANE
        yield _text(_LEFT - 8, y + 8, lane.label, "lane end")
        yield element(
            "rect", x=_LEFT, y=y + 1, width=_RIGHT - _LEFT, height=_LANE - 2, class_="lane-bed"
        )
        for band in lane.bands:
            x, width = _stretch(across, band)
            yield element(
                "rect",
                element("title", band.words),
                x=x,
                y=y + 1,
                width=width,
                height=_LANE - 2,
                class_=band.style,
            )


def _flags(across: Axis, flags: Sequence[Flag], bottom: float) -> Iterator[Markup]:
    labelled_to = -_NEAR_PIXELS
    drawn_to = -1.0
    for flag in flags:
        x = across.place(flag.at_s)
        if x - drawn_to < 1.0:
            continue  # a thousand errors in one second are one line
        drawn_to = x
        title = element("title", flag.words)
        yield element("path", title, d=f"M{x:.1f} 36V{bottom:.1f}", class_="flag")
        if x - labelled_to >= _NEAR_PIXELS:
            yield element("circle", title, cx=x, cy=36.0, r=6.5, class_="flag-head")
            yield _text(x, 39.5, flag.label, "flag-label middle")
            labelled_to = x


def _time_axis(across: Axis, bottom: float) -> Iterator[Markup]:
    yield _line(_LEFT, bottom, _RIGHT, bottom, "axis-line")
    for moment in time_ticks(across.low, across.high):
        x = across.place(moment)
        yield _line(x, bottom, x, bottom + 5, "axis-line")
        is_last = x > _RIGHT - _LABEL_PIXELS
        yield _text(x, bottom + 18, clock(moment), "axis end" if is_last else "axis middle")


def _stretch(across: Axis, band: Band) -> tuple[float, float]:
    """Left edge and width, never too narrow to be seen."""
    x = across.place(band.start_s)
    return x, max(across.place(band.end_s) - x, 1.0)


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=style)


def _text(x: float, y: float, words: str, style: str) -> Markup:
    return element("text", words, x=x, y=y, class_=style)
