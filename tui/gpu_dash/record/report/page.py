"""A session as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_dash.analysis.throttle_cost import ThrottleCost, throttle_cost
from gpu_dash.record.card_steps import card_steps_of
from gpu_dash.record.meta import SessionMeta
from gpu_dash.record.reader import SessionReader
from gpu_dash.record.report.curves import (
    CardCurves,
    LoadCurves,
    ServerCurves,
    read_cards,
    read_load,
    read_server,
)
from gpu_dash.record.report.head import verdict_words, what_ran, where_it_is
from gpu_dash.record.report.load_chart import load_charts
from gpu_dash.record.report.markup import Markup, element
from gpu_dash.record.report.series import TimeSpan
from gpu_dash.record.report.session_charts import session_charts
from gpu_dash.record.report.story import Story, Throttle, read_story, shown_span
from gpu_dash.record.report.style import style_sheet
from gpu_dash.record.report.tables import (
    caps_table,
    card_steps_table,
    cards_table,
    findings_table,
    steps_table,
    throttles_table,
)
from gpu_dash.record.run import server_cards
from gpu_dash.record.words import clock

MARKED_ERRORS = 40
"""Errors with a number in the charts; the table has the others without one."""
_NO_OUTSIDE = "default-src 'none'; style-src 'unsafe-inline'"
"""The page fetches nothing and runs nothing, whatever it might be made to hold."""


def report_page(reader: SessionReader) -> str:
    """The page.

    Args:
        reader: of the session, which may still go on.

    Raises:
        RecordError: a file of the session cannot be read.
    """
    duration_s = reader.duration_s
    story = read_story(reader, duration_s)
    span = TimeSpan(*shown_span(story, duration_s))
    cards = read_cards(reader, server_cards(reader.meta), span, story.windows)
    load = read_load(reader, span)
    server = read_server(reader, span)
    title = reader.meta.label or reader.meta.session
    page = element(
        "html",
        element(
            "head",
            Markup('<meta charset="utf-8">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{_NO_OUTSIDE}">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            element("title", f"gpu-dash: {title}"),
            element("style", style_sheet()),
        ),
        element("body", *_body(reader, story, span, cards, load, server)),
        lang="en",
    )
    return f"<!DOCTYPE html>\n{page}\n"


def _body(
    reader: SessionReader,
    story: Story,
    span: TimeSpan,
    cards: Sequence[CardCurves],
    load: LoadCurves,
    server: ServerCurves,
) -> list[Markup]:
    meta = reader.meta
    numbers = _numbers(story)
    by_step = [one for one in card_steps_of(reader) if one.gpu in {card.info.gpu for card in cards}]
    read = [card for card in cards if _was_read(card)]
    costs = _costs(story, load)
    results = [window.result for window in story.windows if window.result is not None]
    over_load = load_charts(results)
    caps = [one for one in story.throttles if not one.kind.is_alarm]
    parts = [
        element("h1", meta.label or meta.session),
        element("p", _subtitle(meta), class_="sub"),
        what_ran(meta, reader.duration_s),
        _section("Verdict", verdict_words(meta.verdict)),
        _section(
            "Over time",
            session_charts(span, story, load, server, read, numbers),
            _note(_what_is_shown(span, story, load, is_over=bool(meta.ended_utc))),
        ),
    ]
    if over_load:
        parts.append(
            _section(
                "Over the load",
                element("div", *over_load, class_="pair"),
                _note(
                    "Red: a card throttled for heat in that step. Hollow: the client was the "
                    "limit, so the step does not count for the knee."
                ),
            )
        )
    if story.windows:
        expected = meta.plan.expected if meta.plan is not None else None
        parts.append(_section("Steps", steps_table(story.windows, expected)))
    if story.findings:
        parts.append(_section("Findings", findings_table(story.findings, numbers)))
    if costs:
        parts.append(_section("Throttles", throttles_table(costs, story.windows), _note(_COST)))
    if caps:
        parts.append(_section("Power cap", caps_table(caps, story.windows), _note(_CAP)))
    if cards:
        parts.append(_section("Cards", cards_table(cards), _note(_CARDS)))
    if by_step:
        table = card_steps_table(by_step, story.windows)
        parts.append(_section("Cards by step", table, _note(_CARD_STEPS)))
    parts.append(_section("The recording", where_it_is(reader.folder), _note(_DEFINITIONS)))
    return parts


def _section(title: str, *children: Markup) -> Markup:
    return element("section", element("h2", title), *children)


def _note(words: str) -> Markup:
    return element("p", words, class_="note")


def _subtitle(meta: SessionMeta) -> str:
    cards = server_cards(meta)
    names = sorted({card.name for card in cards})
    on = f" on {len(cards)} × {', '.join(names)}" if cards else ""
    started = meta.anchor.time_utc(meta.anchor.monotonic)[:16].replace("T", " ")
    return f"{meta.model or 'no model is known'}{on}, {started} UTC"


def _was_read(card: CardCurves) -> bool:
    return any(series.highest is not None for series in (card.temperature, card.power, card.clock))


def _numbers(story: Story) -> dict[int, int]:
    """A number for each error that the charts mark, by its place among the findings."""
    places = [place for place, found in enumerate(story.findings) if found.is_error]
    return {place: number for number, place in enumerate(places[:MARKED_ERRORS], 1)}


def _costs(story: Story, load: LoadCurves) -> list[tuple[Throttle, ThrottleCost]]:
    windows = [(window.opens_s, window.closes_s) for window in story.windows]
    throttled = [(one.began_s, one.ended_s) for one in story.alarms]
    return [
        (one, throttle_cost((one.began_s, one.ended_s), windows, throttled, load.flow))
        for one in story.alarms
    ]


def _what_is_shown(span: TimeSpan, story: Story, load: LoadCurves, *, is_over: bool) -> str:
    words = (
        f"{clock(span.start_s)} to {clock(span.end_s)} since the session's start, in columns of "
        f"{_seconds(span.column_s)}; each shows its lowest and highest value, so that no peak is "
        "lost."
    )
    if story.throttles:
        words += (
            " Shaded: a card throttled for heat or by the power brake. Lanes: red for these, amber "
            "for a power cap that held the clock down."
        )
    if not is_over:
        words += " Requests that were still open are not in the curves of the load yet."
    if load.usage_missing:
        words += " The server sent no usage for some answers: their tokens are chunks."
    return words


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.0f} s"


_COST = (
    "Cost: output tokens/s during the throttle against those before it in the same step, over at "
    "most 30 s in which no card throttled. Empty where the throttle was there when the step began, "
    "or lay outside of the steps."
)
_CAP = (
    "A card at its power limit is not throttling: that is normal under load. Here are the times in "
    "which the limit held the clock well below its maximum."
)
_CARDS = (
    "Over the time that the charts show; mean power and lowest clock in the windows of the steps."
)
_CARD_STEPS = (
    "Clock that was missing: 1 − SM clock / its maximum, averaged over the readings in which the "
    "card was busy. Hot: seconds in which it throttled for heat."
)
_DEFINITIONS = (
    "Tokens/s: output tokens that arrived inside the step's window, by its length. TTFT: from the "
    "request's sending to the first chunk that carries a token. TPOT: (end to end − TTFT) / "
    "(output tokens − 1). ITL: the gap between two chunks with tokens. Throttled: seconds for "
    "heat, summed over the cards. J/token: energy of the server's cards by output tokens; net: "
    "without what they draw when nothing is asked of them. Knee: the lowest step from which the "
    "gain to the next is less than 10 % per doubling of the load. Times count from the session's "
    "start, as time_s in the CSV files."
)
