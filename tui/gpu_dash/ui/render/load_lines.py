"""The load: what is asked for, where its step stands, and what it brings."""

from __future__ import annotations

from pathlib import PurePath

from gpu_dash.analysis.band import against_band, band_words
from gpu_dash.model.events import LoadChanged
from gpu_dash.model.load import LoadMode, LoadPlan, LoadState, StepResult, load_words
from gpu_dash.model.text import one_line
from gpu_dash.ui.render.bars import bar
from gpu_dash.ui.render.format import ago, count, latency
from gpu_dash.ui.render.row import Role, Row, Run
from gpu_dash.ui.view import View

_WORDS = {
    LoadState.IDLE: ("IDLE", Role.DIM),
    LoadState.WARMUP: ("WARM-UP", Role.ACCENT),
    LoadState.RUNNING: ("RUNNING", Role.GOOD),
    LoadState.PAUSED: ("PAUSED", Role.WARN),
    LoadState.DRAINING: ("DRAINING", Role.WARN),
}
_GAP: Run = ("  ", Role.PLAIN)


def load_rows(view: View, width: int, height: int) -> list[Row]:
    """One line of state and one of results; in a single row the results come first."""
    if height == 1:
        return [
            Row([("load ", Role.DIM), *_asked(view), _GAP, *_brings(view, short=True)]).fit(width)
        ]
    first = Row([("load ", Role.DIM), *_asked(view), *_where(view)])
    second = Row([("     ", Role.DIM), *_brings(view, short=width < 100)])
    return [first.fit(width), second.fit(width)]


def _asked(view: View) -> list[Run]:
    load = view.store.load
    if load is None:
        return [_WORDS[LoadState.IDLE]]
    runs: list[Run] = [_WORDS[load.state]]
    if load.concurrency or load.request_rate is not None:
        runs += [_GAP, (load_words(load.concurrency, load.request_rate), Role.STRONG)]
    if load.request_rate is not None and load.plan is not None and load.plan.trace is None:
        runs += [(f" {load.plan.arrival}", Role.DIM)]
    return runs


def _where(view: View) -> list[Run]:
    """Which step of the ramp, and how much of it is left."""
    load = view.store.load
    if load is None:
        return []
    if load.state is LoadState.IDLE:
        return [*_came_to(view.store.steps, load), *_detail(load)]
    runs: list[Run] = []
    if load.state is LoadState.DRAINING:
        runs += [_GAP, ("the last requests end", Role.DIM)]
    elif load.mode is LoadMode.RAMP and load.plan is not None:
        runs += [_GAP, (_part_of(load.plan, load), Role.PLAIN)]
    elif load.mode is LoadMode.MANUAL:
        runs += [_GAP, ("by hand", Role.PLAIN)]
    if load.state is LoadState.WARMUP:
        runs += [_GAP, *_warmup(view, load)]
    elif load.state is LoadState.RUNNING:
        runs += [_GAP, *_window(view, load)]
    return [*runs, *_detail(load)]


def _detail(load: LoadChanged) -> list[Run]:
    return [_GAP, (load.detail, Role.DIM)] if load.detail else []


def _came_to(steps: list[StepResult], load: LoadChanged) -> list[Run]:
    """What the steps that ended came to, once no load runs."""
    best = max(steps, key=lambda step: step.output_tokens_per_s, default=None)
    if best is None:
        return []
    is_ramp = load.plan is not None and _is_whole_ramp(steps, load.plan)
    what = "the ramp has ended" if is_ramp else f"steps ended: {len(steps)}"
    at = f" at {load_words(best.concurrency, best.request_rate)}"
    rate = f"{count(best.output_tokens_per_s)} tok/s"
    return [_GAP, (what, Role.PLAIN), (", best ", Role.DIM), (rate, Role.STRONG), (at, Role.PLAIN)]


def _part_of(plan: LoadPlan, load: LoadChanged) -> str:
    if plan.trace is not None:
        speed = "" if plan.trace_speed == 1 else f" ×{plan.trace_speed:g}"
        return f"{trace_words(plan.trace)}{speed}"
    place, length = ramp_place(plan, load.concurrency, load.request_rate)
    return f"ramp step {place} of {length}"


def trace_words(path: str) -> str:
    """What is replayed, short enough for a line."""
    return f"replay {one_line(PurePath(path).name)[:24]}"


def _is_whole_ramp(steps: list[StepResult], plan: LoadPlan) -> bool:
    """The newest steps are those of the plan's ramp."""
    if plan.rates:
        return tuple(step.request_rate for step in steps[-len(plan.rates) :]) == plan.rates
    return tuple(step.concurrency for step in steps[-len(plan.ramp) :]) == plan.ramp


def ramp_place(plan: LoadPlan, concurrency: int, rate: float | None) -> tuple[int | str, int]:
    """Which of the ramp's steps this is, counted from 1, and how many there are."""
    if rate is not None:
        return (plan.rates.index(rate) + 1 if rate in plan.rates else "–"), len(plan.rates)
    return (plan.ramp.index(concurrency) + 1 if concurrency in plan.ramp else "–"), len(plan.ramp)


def _warmup(view: View, load: LoadChanged) -> list[Run]:
    if load.window_opens_at is None:
        return []
    left = load.window_opens_at - view.now
    if left > 0:
        return [(f"window opens in {left:.0f}s", Role.PLAIN)]
    return [("waits for the requests of the step before", Role.DIM)]


def _window(view: View, load: LoadChanged) -> list[Run]:
    opens, closes = load.window_opens_at, load.window_closes_at
    if opens is None or closes is None or closes <= opens:
        return []
    length = closes - opens
    done = min(length, max(0.0, view.now - opens))
    return [("window ", Role.DIM), *bar(done / length, 12, Role.ACCENT),
            (f" {done:.0f}/{length:.0f}s", Role.PLAIN)]  # fmt: skip


def _brings(view: View, *, short: bool) -> list[Run]:
    store = view.store
    band = _band(view, short=short)
    runs: list[Run] = [*_throughput(view), *band, _GAP, *_first_token(view, short=short)]
    failed = store.requests_failed
    runs += [_GAP, (f"ok {count(store.requests_ok)}", Role.PLAIN), (" ", Role.PLAIN),
             (f"failed {count(failed)}", Role.ALARM if failed else Role.DIM)]  # fmt: skip
    if store.retries:
        runs += [_GAP, (f"retries {count(store.retries)}", Role.WARN)]
    tick = store.tick
    if tick is not None and not short and not view.is_stale(tick.at):
        runs += [_GAP, (f"in flight {tick.in_flight}", Role.PLAIN)]
        if tick.itl_p50_s is not None:
            runs += [_GAP, (f"ITL {latency(tick.itl_p50_s)}", Role.PLAIN)]
    return runs


def _throughput(view: View) -> list[Run]:
    """What our load brings; while there is none, what the server makes for others."""
    store = view.store
    rate = view.output_tokens_per_s
    if rate is not None and store.tick is not None:
        text = f"{count(rate)} tok/s"
        if not view.is_stale(store.tick.at):
            return [(text, Role.STRONG)]
        rests = store.load is not None and store.load.state in (LoadState.IDLE, LoadState.PAUSED)
        if not rests:
            return [(f"{text} {ago(view.now - store.tick.at)}", Role.DIM)]
    if view.server_tokens_per_s:
        return [("server ", Role.DIM), (f"{count(view.server_tokens_per_s)} tok/s", Role.PLAIN)]
    return [("– tok/s", Role.DIM)]


def _band(view: View, *, short: bool) -> list[Run]:
    """What the profile is known to reach, beside what this step brings."""
    load = view.store.load
    band = load.plan.expected if load is not None and load.plan is not None else None
    if load is None or band is None or load.concurrency not in (0, band.concurrency):
        return []
    last = view.store.steps[-1] if view.store.steps and not load.concurrency else None
    place = against_band(last, band) if last is not None else None
    if place is not None:
        role = Role.GOOD if place.is_good else Role.WARN
        if short:
            return [(f" ({'✓' if place.is_good else '▼'} {band_words(band)})", role)]
        return [(f" ({place.words} at {band.concurrency})", role)]
    at = "" if load.concurrency or short else f" at {band.concurrency}"
    return [(f" (expected {band_words(band)}{at})", Role.DIM)]


def _first_token(view: View, *, short: bool) -> list[Run]:
    """TTFT of the last step that ended; until there is one, the newest median."""
    steps = view.store.steps
    if not steps:
        live = view.live_ttft_s
        if live is None:
            return [("TTFT –", Role.DIM)]
        return [(f"TTFT p50 {latency(live)}", Role.PLAIN), (" (live)", Role.DIM)]
    last = steps[-1]
    text = f"TTFT p50 {latency(last.ttft_p50_s)} p99 {latency(last.ttft_p99_s)}"
    asked = last.concurrency if last.request_rate is None else f"{last.request_rate:g}/s"
    of = f" (at {asked})" if short else f" (step at {asked})"
    return [(text, Role.PLAIN), (of, Role.DIM)]
