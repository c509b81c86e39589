"""The table of finished steps, where the screen is wide enough for it."""

from __future__ import annotations

from gpu_dash.analysis.band import BandPlace, against_band
from gpu_dash.model.load import StepResult
from gpu_dash.ui.render.format import count, latency, whole
from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.view import View

_TITLES = ("load", "tok/s", "TTFT p50", "p99", "ok", "fail", "peak°", "thr s")
_WIDTHS = (7, 7, 9, 8, 6, 5, 6, 6)


def steps_rows(view: View, width: int, height: int) -> list[Row]:
    """The newest steps that fit, oldest first, under their titles."""
    rows = [_row(_TITLES, [Role.DIM] * len(_TITLES)).fit(width)]
    steps = view.store.steps[-(height - 1) :] if height > 1 else []
    best = max((step.output_tokens_per_s for step in view.store.steps), default=0.0)
    load = view.store.load
    band = load.plan.expected if load is not None and load.plan is not None else None
    for step in steps:
        row = _step(step, is_best=step.output_tokens_per_s == best)
        place = against_band(step, band)
        if place is not None:
            row = _marked(row, place)
        rows.append(row.fit(width))
    if not steps and height > 1:
        rows.append(Row([("  no step has ended yet", Role.DIM)]).fit(width))
    return rows[:height]


def _step(step: StepResult, *, is_best: bool) -> Row:
    throttled = step.throttle_thermal_s or 0.0
    texts = (
        count(step.concurrency) if step.request_rate is None else f"{step.request_rate:g}/s",
        count(step.output_tokens_per_s),
        latency(step.ttft_p50_s),
        latency(step.ttft_p99_s),
        count(step.requests_ok),
        count(step.requests_failed),
        whole(step.peak_temperature_celsius, "°"),
        "–" if step.throttle_thermal_s is None else f"{throttled:.0f}",
    )
    roles = [Role.PLAIN] * len(texts)
    roles[0] = Role.STRONG
    roles[1] = Role.GOOD if is_best else Role.PLAIN
    roles[5] = Role.ALARM if step.requests_failed else Role.DIM
    roles[7] = Role.ALARM if throttled else Role.DIM
    return _row(texts, roles)


def _marked(row: Row, place: BandPlace) -> Row:
    """The sign of the band in front: ``✓`` as expected or better, ``▼`` worse."""
    sign, role = ("✓", Role.GOOD) if place.is_good else ("▼", Role.WARN)
    runs = list(row)
    return Row([(sign, role), (runs[0][0][1:], runs[0][1]), *runs[1:]])


def _row(texts: tuple[str, ...], roles: list[Role]) -> Row:
    row = Row()
    for text, width, role in zip(texts, _WIDTHS, roles, strict=True):
        row.add(text.rjust(width), role)
    return row
