"""Throughput and time to first token over the load, with the knee."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpu_dash.analysis.knee import knee, load_of, thermal_knee
from gpu_dash.model.load import StepResult
from gpu_dash.record.report.axis import Axis, from_zero, linear_ticks, log_ticks
from gpu_dash.record.report.markup import Markup, element, pixels
from gpu_dash.record.words import latency, number, short

WIDTH, HEIGHT = 540.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 526.0, 34.0, 208.0
_LABEL_PIXELS = 26.0


@dataclass(frozen=True)
class Curve:
    """One figure of the steps."""

    label: str
    style: str
    of: Callable[[StepResult], float | None]
    words: Callable[[float | None], str]


_THROUGHPUT = Curve("", "c0", lambda step: step.output_tokens_per_s, number)
_TTFT = (
    Curve("median", "c1", lambda step: step.ttft_p50_s, latency),
    Curve("99th percentile", "c5", lambda step: step.ttft_p99_s, latency),
)


def load_charts(steps: Sequence[StepResult]) -> list[Markup]:
    """A pair of pictures for the closed loops, and one for the open loops; none for a kind of
    which there are fewer than two loads."""
    pictures = []
    for is_open in (False, True):
        chosen = [step for step in steps if (step.concurrency is None) is is_open and load_of(step)]
        if len({load_of(step) for step in chosen}) < 2:
            continue
        axis = "requests per second" if is_open else "concurrent requests"
        throughput = from_zero(step.output_tokens_per_s for step in chosen)
        pictures.append(
            _chart("Throughput, output tokens/s", axis, chosen, (_THROUGHPUT,), throughput)
        )
        ttfts = [value for curve in _TTFT for step in chosen if (value := curve.of(step))]
        if ttfts:
            scale = min(ttfts) / 1.3, max(ttfts) * 1.3
            pictures.append(
                _chart("Time to first token", axis, chosen, _TTFT, scale, is_logarithmic=True)
            )
    return pictures


def _chart(
    title: str,
    axis_title: str,
    steps: Sequence[StepResult],
    curves: Sequence[Curve],
    scale: tuple[float, float],
    *,
    is_logarithmic: bool = False,
) -> Markup:
    loads = sorted({load_of(step) or 0.0 for step in steps})
    across = Axis(loads[0], loads[-1], _LEFT + 16, _RIGHT - 16, is_logarithmic=True)
    up = Axis(*scale, _BOTTOM, _TOP, is_logarithmic=is_logarithmic)
    ticks = log_ticks(*scale) if is_logarithmic else linear_ticks(*scale)
    words = latency if is_logarithmic else short
    return element(
        "svg",
        element("text", title, x=_LEFT, y=16.0, class_="title"),
        *_grid(up, [(tick, words(tick)) for tick in ticks]),
        *_loads(across, loads, axis_title),
        *_knees(across, steps),
        *(part for curve in curves for part in _curve(across, up, curve, steps)),
        *_legend(curves),
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        class_="chart half",
        role="img",
        aria_label=f"{title} over {axis_title}",
    )


def _grid(up: Axis, ticks: Sequence[tuple[float, str]]) -> Iterator[Markup]:
    for value, label in ticks:
        y = up.place(value)
        yield element("line", x1=_LEFT, y1=y, x2=_RIGHT, y2=y, class_="grid")
        yield element("text", label, x=_LEFT - 6, y=y + 4, class_="axis end")


def _loads(across: Axis, loads: Sequence[float], title: str) -> Iterator[Markup]:
    yield element("line", x1=_LEFT, y1=_BOTTOM, x2=_RIGHT, y2=_BOTTOM, class_="axis-line")
    labelled_to = -_LABEL_PIXELS
    for load in loads:
        x = across.place(load)
        yield element("line", x1=x, y1=_BOTTOM, x2=x, y2=_BOTTOM + 4, class_="axis-line")
        if x - labelled_to >= _LABEL_PIXELS:
            yield element("text", f"{load:g}", x=x, y=_BOTTOM + 17, class_="axis middle")
            labelled_to = x
    yield element("text", title, x=(_LEFT + _RIGHT) / 2, y=_BOTTOM + 35, class_="axis middle")


def _knees(across: Axis, steps: Sequence[StepResult]) -> Iterator[Markup]:
    flat, hot = knee(steps), thermal_knee(steps)
    for step, words, y in ((flat, "knee", _TOP + 8), (hot, "thermal knee", _TOP + 22)):
        load = None if step is None else load_of(step)
        if load is None:
            continue
        x = across.place(load)
        is_right = x > (_LEFT + _RIGHT) / 2
        yield element("line", x1=x, y1=_TOP, x2=x, y2=_BOTTOM, class_="rule")
        yield element(
            "text",
            f"{words} {load:g}",
            x=x - 5 if is_right else x + 5,
            y=y,
            class_="rule-label end" if is_right else "rule-label",
        )


def _curve(across: Axis, up: Axis, curve: Curve, steps: Sequence[StepResult]) -> Iterator[Markup]:
    """The line through the step that stands for each load, as for the knee, and a point for every
    step: hollow where the client was the limit, red where a card throttled."""
    standing: dict[float, float] = {}
    for step in sorted(steps, key=lambda step: not step.client_bound):
        load, value = load_of(step), curve.of(step)
        if load is not None and value is not None:
            standing[load] = value
    line = "L".join(
        f"{pixels(across.place(load))} {pixels(up.place(value))}"
        for load, value in sorted(standing.items())
    )
    if line:
        yield element("path", d=f"M{line}", class_=curve.style)
    for step in steps:
        load, value = load_of(step), curve.of(step)
        if load is None or value is None:
            continue
        yield element(
            "circle",
            element("title", _about(step, curve, value)),
            cx=across.place(load),
            cy=up.place(value),
            r=4.0,
            class_=_point_style(step, curve),
        )


def _point_style(step: StepResult, curve: Curve) -> str:
    if step.client_bound:
        return f"point hollow {curve.style}"
    return "point hot" if step.throttle_thermal_s else f"point f{curve.style}"


def _about(step: StepResult, curve: Curve, value: float) -> str:
    words = f"step {step.step}, {load_of(step):g}: {curve.words(value)} {curve.label}".strip()
    if step.client_bound:
        words += "; the client was the limit"
    if step.throttle_thermal_s:
        words += f"; throttled thermally for {step.throttle_thermal_s:.1f} s"
    return words


def _legend(curves: Sequence[Curve]) -> Iterator[Markup]:
    x = _RIGHT
    for curve in reversed([curve for curve in curves if curve.label]):
        x -= 24 + 6.4 * len(curve.label)
        yield element("path", d=f"M{x:.1f} 12h14", class_=curve.style)
        yield element("text", curve.label, x=x + 18, y=16.0, class_="legend")
