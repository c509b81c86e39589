"""What the load keys do now: one answer for the key bar and for the key itself."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_dash.model.commands import (
    Command,
    PauseLoad,
    ResumeLoad,
    SetConcurrency,
    SetRate,
    StartRamp,
    StopLoad,
    StopServer,
    TakeControl,
)
from gpu_dash.model.load import LoadPlan, LoadState
from gpu_dash.model.server import HandleKind, ServerState
from gpu_dash.ui.level_keys import AskedLoad, level_after, other_kind
from gpu_dash.ui.render.load_lines import trace_words
from gpu_dash.ui.view import View

OVER = (ServerState.NONE, ServerState.STOPPED, ServerState.FAILED)
"""States in which a server can be launched."""


@dataclass(frozen=True)
class Offer:
    """What a key would do: a command, or why not."""

    label: str
    """What it does, short enough for the key bar; empty if there is nothing to show."""
    command: Command | None = None
    why_not: str = ""


def load_offer(key: str, view: View) -> Offer:
    """What one of ``+ - ] [ 1…9 0 r o`` does now."""
    refusal = _why_no_load(view, stops=key == "0")
    if refusal:
        return Offer("", why_not=refusal)
    if key == "r":
        return _ramp(view)
    now = load_now(view)
    if key == "0":
        if now.is_none:
            return Offer("", why_not="no load runs")
        return Offer("stop load", StopLoad())
    if key == "o":
        return _other_kind(view, now)
    wanted = level_after(key, now, _plan(view))
    if wanted == now:
        already = "no load runs: + starts" if now.is_none else f"{now.label} already"
        return Offer("", why_not=already)
    before = f"{now.rate:g}" if now.rate is not None and wanted.rate is not None else now.label
    return Offer(f"{before}→{wanted.label}", _command(wanted))


def load_now(view: View) -> AskedLoad:
    """What is asked for now; nothing while no load runs."""
    load = view.store.load
    if load is None or load.state in (LoadState.IDLE, LoadState.DRAINING):
        return AskedLoad()
    return AskedLoad(load.concurrency, load.request_rate)


def _other_kind(view: View, now: AskedLoad) -> Offer:
    plan, tick = _plan(view), view.store.tick
    tokens_per_s = view.output_tokens_per_s
    wanted = other_kind(
        now,
        plan,
        rate_now=tokens_per_s / plan.output_tokens if plan is not None and tokens_per_s else None,
        in_flight=tick.in_flight if tick is not None else 0,
    )
    kind = f"{wanted.label} open loop" if wanted.rate is not None else f"{wanted.label} in flight"
    return Offer(kind, _command(wanted))


def _command(wanted: AskedLoad) -> Command:
    if wanted.rate is not None:
        return SetRate(rate=wanted.rate)
    return SetConcurrency(concurrency=wanted.concurrency)


def _plan(view: View) -> LoadPlan | None:
    return view.store.load.plan if view.store.load is not None else None


def _ramp(view: View) -> Offer:
    load = view.store.load
    state = load.state if load is not None else LoadState.IDLE
    if state in (LoadState.WARMUP, LoadState.RUNNING):
        return Offer("pause", PauseLoad())
    if state is LoadState.PAUSED:
        return Offer("resume", ResumeLoad())
    plan = _plan(view)
    if plan is None:
        return Offer("", why_not="no ramp is known: start gpu-dash with a profile")
    if plan.trace is not None:
        return Offer(trace_words(plan.trace), StartRamp())
    steps = [f"{rate:g}" for rate in plan.rates] or [str(step) for step in plan.ramp]
    return Offer(f"ramp {','.join(steps)}{'/s' if plan.rates else ''}", StartRamp())


def stop_server_offer(view: View) -> Offer:
    """What ``s`` does now; it asks first."""
    refusal = _why_no_command(view)
    status = view.store.server
    if refusal:
        return Offer("", why_not=refusal)
    if status.state in OVER:
        return Offer("", why_not="no server runs")
    if status.kind is HandleKind.EXTERNAL:
        return Offer("", why_not="somebody else started this server: gpu-dash does not stop it")
    return Offer("stop server", StopServer())


def launch_offer(view: View, launch: Command | None) -> Offer:
    """What ``l`` does now."""
    refusal = _why_no_command(view)
    if refusal:
        return Offer("", why_not=refusal)
    if launch is None:
        return Offer("", why_not="no profile to launch: start gpu-dash with its name")
    return begin_offer(view, launch)


def begin_offer(view: View, launch: Command) -> Offer:
    """A launch, unless something runs or somebody else has the controls."""
    refusal = _why_no_command(view)
    if refusal:
        return Offer("", why_not=refusal)
    if view.store.server.state not in OVER:
        return Offer("", why_not="a server runs already")
    return Offer("launch", launch)


def control_offer(view: View) -> Offer:
    """What ``c`` does now."""
    if view.play is not None or view.is_lost:
        return Offer("", why_not=_why_no_command(view))
    if view.access.read_only:
        return Offer("", why_not="this viewer was opened read-only")
    if view.access.yours:
        return Offer("", why_not="you have the controls")
    return Offer("take control", TakeControl())


def _why_no_load(view: View, *, stops: bool) -> str:
    refusal = _why_no_command(view)
    if refusal or stops or view.server_is_up:
        return refusal
    if view.store.server.state is ServerState.NONE:
        return "no server runs: nothing to load"
    return f"the server is {view.store.server.state}, not ready"


def _why_no_command(view: View) -> str:
    if view.play is not None:
        return "this is a replay: load keys are off"
    if view.is_lost:
        return "no agent to ask"
    if view.access.read_only:
        return "this viewer was opened read-only"
    if not view.access.yours:
        return "read-only: another terminal has the controls, c takes them"
    return ""
