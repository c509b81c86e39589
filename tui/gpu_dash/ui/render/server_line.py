"""The first line: the server's state as a word, its age, and what it says of itself."""

from __future__ import annotations

from gpu_dash.model.server import HandleKind, ServerState
from gpu_dash.ui.feed import LinkState
from gpu_dash.ui.render.bars import bar
from gpu_dash.ui.render.failure import failure_of
from gpu_dash.ui.render.format import ago, duration, percent
from gpu_dash.ui.render.row import Role, Row, Run
from gpu_dash.ui.view import View

_SIGNS: dict[ServerState, tuple[str, Role]] = {
    ServerState.NONE: ("○", Role.DIM),
    ServerState.STARTING: ("◐", Role.WARN),
    ServerState.READY: ("●", Role.GOOD),
    ServerState.UNREACHABLE: ("✗", Role.SHOUT),
    ServerState.STOPPING: ("◑", Role.WARN),
    ServerState.STOPPED: ("○", Role.STRONG),
    ServerState.FAILED: ("✗", Role.SHOUT),
}
_GAP = ("  ", Role.PLAIN)
_WIDE = 100
"""Cells from which words are written out."""


def server_rows(view: View, width: int, height: int) -> list[Row]:
    """The header."""
    row = Row([("gpu-dash ", Role.DIM)])
    if view.link.state is LinkState.CONNECTING:
        row.add("CONNECTING ", Role.STRONG)
        row.add(f"{duration(view.now - view.link.since)} to the agent", Role.DIM)
        return [row.fit(width)]
    if view.is_lost:
        row.add(" AGENT GONE ", Role.SHOUT)
        row.add(f" {ago(view.now - view.link.since)}: values are the last known", Role.WARN)
        return [row.fit(width)]
    row.extend(_state(view))
    row.extend(_told(view, short=width < _WIDE))
    return [row.right(_whose(view), width)]


def _state(view: View) -> list[Run]:
    status = view.store.server
    sign, role = _SIGNS[status.state]
    word = "NO SERVER" if status.state is ServerState.NONE else status.state.upper()
    runs: list[Run] = [(f"{sign} {word}", role)]
    if status.since and status.state is not ServerState.NONE:
        runs.append((f" {duration(view.now - status.since)}", Role.PLAIN))
    return runs


def _told(view: View, *, short: bool) -> list[Run]:
    """What the state means in words, or what the server says of itself while it is up."""
    store = view.store
    status = store.server
    if status.state is ServerState.STARTING:
        return [_GAP, *_stage(view)]
    if status.state in (ServerState.FAILED, ServerState.UNREACHABLE):
        failure = failure_of(status)
        parts = [(failure.cause, Role.STRONG), (failure.ending, Role.PLAIN)]
        return [run for part in parts if part[0] for run in (_GAP, part)]
    if status.state is ServerState.NONE:
        offer = "l launches one" if view.can_launch else "start gpu-dash with a profile or a URL"
        return [_GAP, (offer, Role.DIM)]
    runs: list[Run] = [_GAP, (status.model or status.base_url, Role.STRONG)]
    if status.kind is HandleKind.EXTERNAL:
        runs.append((" (external)", Role.DIM))
    return [*runs, *_metrics(view, short=short)]


def _stage(view: View) -> list[Run]:
    status = view.store.server
    runs: list[Run] = [(status.stage or "no word from it yet", Role.STRONG)]
    if status.stage_since:
        expected = status.stage_expected_s
        of = "" if expected is None else f"of about {duration(expected)} "
        runs.append((f" {duration(view.now - status.stage_since)} {of}", Role.DIM))
    if status.stage_progress is not None:
        runs.extend(bar(status.stage_progress, 10))
        runs.append((f" {percent(status.stage_progress)}", Role.PLAIN))
    if status.quiet_since is not None:
        quiet = duration(view.now - status.quiet_since)
        runs.append((f" no progress for {quiet} ", Role.WARN))
    return [*runs, _GAP, (status.model, Role.DIM)]


def _metrics(view: View, *, short: bool) -> list[Run]:
    metrics = view.store.metrics
    if metrics is None:
        return []
    parts = []
    if metrics.running_requests is not None:
        parts.append(f"{'run' if short else 'running'} {metrics.running_requests}")
    if metrics.waiting_requests is not None:
        parts.append(f"{'wait' if short else 'waiting'} {metrics.waiting_requests}")
    if metrics.kv_cache_usage is not None:
        parts.append(f"KV {percent(metrics.kv_cache_usage)}")
    text = " ".join(parts)
    if view.is_stale(view.store.metrics_at):
        age = view.age(view.store.metrics_at)
        return [_GAP, (f"{text} {ago(age or 0.0)}", Role.DIM)]
    return [_GAP, (text, Role.PLAIN)]


def _whose(view: View) -> list[Run]:
    """Session and controls, at the right."""
    if view.play is not None:
        return [
            ("  replay ", Role.ACCENT),
            (view.store.session_label or view.store.session, Role.DIM),
        ]
    if not view.access.yours:
        return [("  read-only", Role.WARN)]
    if view.access.viewers > 1:
        return [(f"  {view.access.viewers} viewers", Role.DIM)]
    return [(f"  {view.store.session_label}", Role.DIM)] if view.store.session_label else []
