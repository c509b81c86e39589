"""The tables of the report."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_dash.analysis.band import against_band
from gpu_dash.analysis.card_steps import CardStep
from gpu_dash.analysis.throttle_cost import ThrottleCost
from gpu_dash.model.load import ExpectedBand, StepResult
from gpu_dash.model.offered import highest, lowest
from gpu_dash.record.journal import THROTTLE_CHECK
from gpu_dash.record.report.curves import CardCurves
from gpu_dash.record.report.markup import Child, Markup, element, joined
from gpu_dash.record.report.story import Found, Throttle, Window
from gpu_dash.record.words import NOT_OFFERED, clock, latency, number

SHOWN_STEPS = 200
SHOWN_STEP_COLUMNS = 16
SHOWN_FINDINGS = 100
SHOWN_THROTTLES = 60
"""So that the report of a session of any length can be opened; the CSV files have the rest."""


_STEPS = (
    "Step", "Load", "Begins", "Window", "Tokens/s", "TTFT p50", "p99", "TPOT p50", "p99",
    "ITL p99", "ok", "failed", "Peak", "Min clock", "Throttled", "J/token", "net", "Remark",
)  # fmt: skip
_CARDS = (
    "Card", "Name", "Peak", "To its limit", "Mean power", "Peak power", "Lowest clock",
    "Memory", "Throttled: heat", "power", "Energy",
)  # fmt: skip
_FINDINGS = (
    "No.", "At", "Severity", "What", "Where", "Message", "Check first", "Log line",
)  # fmt: skip
_THROTTLES = (
    "Card", "Kind", "Reasons", "From", "Lasted", "Peak", "Lowest clock", "Load",
    "Tokens/s before", "during", "Cost", "Check first",
)  # fmt: skip
_CAPS = ("Load", "Card", "Times", "Together", "Peak", "Lowest clock")
_TEXTS = frozenset(
    {"Remark", "Name", "Severity", "What", "Where", "Message", "Check first", "Kind", "Reasons"}
)
"""Columns that hold words; all others hold numbers and are set to the right."""


def steps_table(windows: Sequence[Window], expected: ExpectedBand | None = None) -> Markup:
    """One row per step, those that are not over among them.

    Args:
        windows: of the steps.
        expected: what the profile is known to reach; said beside the steps of its concurrency.
    """
    table = _table(_STEPS, [_step(window, expected) for window in windows[:SHOWN_STEPS]])
    return joined((table, _more(len(windows) - SHOWN_STEPS, "steps.csv")))


def cards_table(cards: Sequence[CardCurves]) -> Markup:
    """What each card did over the time that the charts show."""
    return _table(_CARDS, [_card(card) for card in cards])


def card_steps_table(card_steps: Sequence[CardStep], windows: Sequence[Window]) -> Markup:
    """A row per card, a column per step: the clock that was missing, and the seconds of heat."""
    shown = [window for window in windows if window.result is not None][:SHOWN_STEP_COLUMNS]
    cells = {(one.gpu, one.step): _deficit(one) for one in card_steps}
    rows: list[list[Child]] = [
        [f"{gpu}", *(cells.get((gpu, window.step), "") for window in shown)]
        for gpu in sorted({one.gpu for one in card_steps})
    ]
    table = _table(["Card", *(f"at {window.load}" for window in shown)], rows)
    return joined((table, _more(len(windows) - SHOWN_STEP_COLUMNS, "steps.csv", "steps more ")))


def _deficit(one: CardStep) -> Markup:
    words = NOT_OFFERED if one.clock_deficit is None else f"{100 * one.clock_deficit:.1f} %"
    if not one.throttle_thermal_s:
        return element("span", words)
    return element("span", f"{words}, {one.throttle_thermal_s:.1f} s hot", class_="failed-word")


def findings_table(findings: Sequence[Found], numbers: dict[int, int]) -> Markup:
    """What was found.

    Args:
        findings: in the order of time.
        numbers: of those that the charts mark, by their place in ``findings``.
    """
    rows = [_finding(found, numbers.get(place)) for place, found in enumerate(findings)]
    table = _table(_FINDINGS, rows[:SHOWN_FINDINGS])
    return joined((table, _more(len(findings) - SHOWN_FINDINGS, "events.csv")))


def caps_table(caps: Sequence[Throttle], windows: Sequence[Window]) -> Markup:
    """Power caps that cost clock come and go by the second: together, by load and card."""
    groups: dict[tuple[str, int], list[Throttle]] = {}
    for cap in caps:
        groups.setdefault((_load_at(cap.began_s, windows), cap.gpu), []).append(cap)
    rows: list[list[Child]] = [
        [
            load or "none",
            f"{gpu}",
            f"{len(group)}",
            f"{sum(cap.ended_s - cap.began_s for cap in group):.1f} s",
            _with_unit(highest(cap.peak_temperature_celsius for cap in group), "°C"),
            _with_unit(lowest(cap.lowest_sm_clock_mhz for cap in group), "MHz"),
        ]
        for (load, gpu), group in groups.items()
    ]
    table = _table(_CAPS, rows[:SHOWN_THROTTLES])
    return joined((table, _more(len(rows) - SHOWN_THROTTLES, "events.csv")))


def throttles_table(
    costs: Sequence[tuple[Throttle, ThrottleCost]], windows: Sequence[Window]
) -> Markup:
    """The throttles in the order of time; where they are too many, the longest."""
    longest = sorted(costs, key=lambda pair: pair[0].began_s - pair[0].ended_s)[:SHOWN_THROTTLES]
    shown = sorted(longest, key=lambda pair: (pair[0].began_s, pair[0].gpu))
    table = _table(_THROTTLES, [_throttle(*pair, windows) for pair in shown])
    return joined((table, _more(len(costs) - SHOWN_THROTTLES, "events.csv", "shorter ones ")))


def _step(window: Window, expected: ExpectedBand | None) -> list[Child]:
    step = window.result
    head: list[Child] = [f"{window.step}", window.load, clock(window.opens_s)]
    if step is None:
        empty: list[Child] = [NOT_OFFERED] * (len(_STEPS) - len(head) - 1)
        return [*head, *empty, "not over"]
    return [
        *head,
        f"{step.duration_s:.0f} s",
        number(step.output_tokens_per_s, 1),
        latency(step.ttft_p50_s),
        latency(step.ttft_p99_s),
        latency(step.tpot_p50_s),
        latency(step.tpot_p99_s),
        latency(step.itl_p99_s),
        number(step.requests_ok),
        number(step.requests_failed),
        _with_unit(step.peak_temperature_celsius, "°C"),
        _with_unit(step.min_sm_clock_mhz, "MHz"),
        _with_unit(step.throttle_thermal_s, "s", 1),
        number(step.joules_per_output_token, 2),
        number(step.net_joules_per_output_token, 2),
        "; ".join(_remarks(step, expected)),
    ]


def _remarks(step: StepResult, expected: ExpectedBand | None) -> list[str]:
    place = against_band(step, expected)
    return [
        *(["client-bound"] if step.client_bound else []),
        *([place.words] if place is not None else []),
    ]


def _card(card: CardCurves) -> list[Child]:
    return [
        f"{card.info.gpu}",
        card.info.name,
        _with_unit(card.temperature.highest, "°C"),
        _with_unit(card.min_headroom_celsius, "°C"),
        _with_unit(card.mean_power_watts, "W"),
        _with_unit(card.power.highest, "W"),
        _with_unit(card.lowest_clock_mhz, "MHz"),
        _with_unit(_divided(card.peak_memory_used_bytes, 2**30), "GiB", 1),
        _with_unit(card.thermal.advanced, "s", 1),
        _with_unit(card.power_throttle.advanced, "s", 1),
        _with_unit(_divided(card.energy.advanced, 1000), "kJ", 1),
    ]


def _finding(found: Found, mark: int | None) -> list[Child]:
    return [
        "" if mark is None else f"{mark}",
        clock(found.at_s),
        found.severity.value,
        found.kind.replace("_", " "),
        found.subject,
        found.message,
        found.first_check,
        "" if found.line is None else f"{found.line}",
    ]


def _throttle(throttle: Throttle, cost: ThrottleCost, windows: Sequence[Window]) -> list[Child]:
    lasted = f"{throttle.ended_s - throttle.began_s:.1f} s"
    return [
        f"{throttle.gpu}",
        throttle.kind.replace("_", " "),
        ", ".join(throttle.reasons),
        clock(throttle.began_s),
        lasted if throttle.is_over else f"{lasted}, goes on",
        _with_unit(throttle.peak_temperature_celsius, "°C"),
        _with_unit(throttle.lowest_sm_clock_mhz, "MHz"),
        _load_at(throttle.began_s, windows) or "none",
        number(cost.before_tokens_per_s),
        number(cost.during_tokens_per_s),
        NOT_OFFERED if cost.change is None else f"{cost.change * 100:+.0f} %".replace("-", "−"),
        THROTTLE_CHECK[throttle.kind],
    ]


def _load_at(moment: float, windows: Sequence[Window]) -> str:
    return next((w.load for w in windows if w.opens_s <= moment < w.closes_s), "")


def _table(columns: Sequence[str], rows: Sequence[Sequence[Child]]) -> Markup:
    styles = ["w" if column in _TEXTS else "n" for column in columns]
    head = element(
        "tr",
        *(
            element("th", column, class_=style)
            for column, style in zip(columns, styles, strict=True)
        ),
    )
    body = [
        element(
            "tr",
            *(element("td", cell, class_=style) for cell, style in zip(row, styles, strict=True)),
        )
        for row in rows
    ]
    table = element("table", element("thead", head), element("tbody", *body))
    return element("div", table, class_="scroll")


def _more(count: int, file: str, what: str = "") -> Markup:
    if count <= 0:
        return Markup("")
    return element("p", f"and {count:,} {what or 'more '}in {file}", class_="note")


def _with_unit(value: float | None, unit: str, digits: int = 0) -> str:
    return NOT_OFFERED if value is None else f"{number(value, digits)} {unit}"


def _divided(value: float | None, by: float) -> float | None:
    return None if value is None else value / by
