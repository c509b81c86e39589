"""The charts of a session on one time axis: load, throttles, cards."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_dash.model.gpu import ThrottleKind
from gpu_dash.record.report.axis import from_zero
from gpu_dash.record.report.card_panels import card_panels
from gpu_dash.record.report.curves import CardCurves, LoadCurves, ServerCurves
from gpu_dash.record.report.markup import Markup
from gpu_dash.record.report.series import TimeSpan
from gpu_dash.record.report.story import Story, Throttle, Window
from gpu_dash.record.report.time_chart import Band, Flag, Lane, Line, Panel, time_chart
from gpu_dash.record.words import clock, latency, number

LANES = 16
_KINDS = tuple(reversed(ThrottleKind))
"""What alarms most is drawn last, over the others."""


def session_charts(
    span: TimeSpan,
    story: Story,
    load: LoadCurves,
    server: ServerCurves,
    cards: Sequence[CardCurves],
    numbers: dict[int, int],
) -> Markup:
    """The picture.

    Args:
        span: what it shows of the session.
        story: what happened.
        load: what the requests met.
        server: what it said of itself.
        cards: the server's.
        numbers: of the errors that are marked, by their place in the story's findings.
    """
    panels = [_throughput(load), _ttft(load)]
    if server.was_read:
        panels.append(_queue(server))
    if cards:
        panels += card_panels(cards)
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


def _queue(server: ServerCurves) -> Panel:
    low, high = from_zero([server.running.highest, server.waiting.highest])
    return Panel(
        title="Requests in the server",
        low=low,
        high=high,
        lines=[Line(server.running, "c3", "running"), Line(server.waiting, "c5", "waiting")],
    )


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
