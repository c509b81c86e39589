"""What the load keys do now: one answer for the key bar and for the key itself."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_dash.model.commands import (
    Command,
    PauseLoad,
    ResumeLoad,
    SetConcurrency,
    StartRamp,
    StopLoad,
    StopServer,
    TakeControl,
)
from gpu_dash.model.load import LoadPlan, LoadState
from gpu_dash.model.server import HandleKind, ServerState
from gpu_dash.ui.view import View

PRESETS: dict[str, int] = {str(digit): 2 ** (digit - 1) for digit in range(1, 10)}
"""Digits: 1 is 1 request at a time, then 2, 4, 8 … up to 9 for 256."""
OVER = (ServerState.NONE, ServerState.STOPPED, ServerState.FAILED)
"""States in which a server can be launched."""
_LADDER = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Offer:
    """What a key would do: a command, or why not."""

    label: str
    """What it does, short enough for the key bar; empty if there is nothing to show."""
    command: Command | None = None
    why_not: str = ""


def load_offer(key: str, view: View) -> Offer:
    """What one of ``+ - ] [ 1…9 0 r`` does now."""
    refusal = _why_no_load(view, stops=key == "0")
    if refusal:
        return Offer("", why_not=refusal)
    if key == "r":
        return _ramp(view)
    now = concurrency_now(view)
    if key == "0":
        if now == 0:
            return Offer("", why_not="no load runs")
        return Offer("stop load", StopLoad())
    wanted = _wanted(key, now, _ladder(view))
    if wanted == now:
        return Offer("", why_not=f"{now} concurrent already" if now else "no load runs: + starts")
    return Offer(f"{now}→{wanted}", SetConcurrency(concurrency=wanted))


def concurrency_now(view: View) -> int:
    """What is asked for now; 0 while no load runs."""
    load = view.store.load
    if load is None or load.state in (LoadState.IDLE, LoadState.DRAINING):
        return 0
    return load.concurrency


def _wanted(key: str, now: int, ladder: tuple[int, ...]) -> int:
    if key in PRESETS:
        return PRESETS[key]
    if key == "+":
        return next((step for step in ladder if step > now), max(1, now * 2))
    if key == "-":
        lower = [step for step in ladder if step < now]
        return lower[-1] if lower else max(min(now, 1), now // 2)
    return now * 2 if key == "]" else max(min(now, 1), now // 2)


def _ladder(view: View) -> tuple[int, ...]:
    plan = _plan(view)
    return tuple(sorted(set(plan.ramp))) if plan is not None else _LADDER


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
    return Offer("ramp " + ",".join(str(step) for step in plan.ramp), StartRamp())


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
