"""Which step runs, and when its window opens and closes.

A pure state machine: every method is told the moment, and returns what follows from it: frames
for the worker, events for the road, and :class:`StepFinished` for the ledger. Nothing here waits;
:meth:`Conductor.deadline` says when to call :meth:`Conductor.poll`.

The rules:

* A step's load begins at once. Its window opens when its warm-up is over **and** every request of
  the steps before has ended, but not later than the plan's time-out; it stays open for the plan's
  step length. Then the next step of the ramp begins.
* With ``requests`` a step is that many requests, from the first send to the last token. It has no
  warm-up, and the next step begins when the last of them has ended.
* A key that changes the load closes the window of the current step at that moment, whose result
  stands with the shorter duration, and begins a new step by the same rules. A load set by hand
  goes on: when its window has closed, the next step begins at the same concurrency or rate.
* Pausing ends the step; resuming begins the next one where it was (the same place of the ramp).
* After the last step nothing new is sent and what is in flight may end, up to the time-out; then
  it is cancelled.

Steps are numbered from 1 through the session, across ramps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gpu_dash.load.protocol import Cancel, SetLoad, Window
from gpu_dash.model.events import LoadChanged, StepBegan
from gpu_dash.model.load import LoadMode, LoadPlan, LoadState, Slo

OPEN_LOOP_LEAD_S = 0.02
"""An open loop begins so much later, so that the workers have been told by then."""
LEAD_S = 0.05
"""A window that opens because the last request of the step before has ended opens so much later,
so that the worker has been told by then."""


class Level(NamedTuple):
    """How much load a step asks for."""

    concurrency: int
    """Requests in flight; 0 in an open loop."""
    rate: float | None = None
    """Requests per second of an open loop."""

    @property
    def sends(self) -> bool:
        """It asks for requests."""
        return self.concurrency > 0 or self.rate is not None


def levels_of(plan: LoadPlan) -> tuple[Level, ...]:
    """The steps of a plan's ramp."""
    if plan.rates:
        return tuple(Level(0, rate) for rate in plan.rates)
    return tuple(Level(concurrency) for concurrency in plan.ramp)


@dataclass(frozen=True)
class StepFinished:
    """All requests of a step have ended."""

    step: int
    level: Level
    slo: Slo | None
    was_open: bool
    """Its window opened; else the load was changed before, and the step has no result."""
    opened_at: float | None = None
    """When its window opened; ``None``: with its first request."""
    closed_at: float | None = None
    """When its window closed; ``None``: with its last token."""


Output = SetLoad | Window | Cancel | LoadChanged | StepBegan | StepFinished


@dataclass
class _Step:
    number: int
    level: Level
    requests: int | None
    plan: LoadPlan
    began_at: float
    opens_at: float | None = None
    """Known once it is decided."""
    closes_at: float | None = None
    is_open: bool = False
    first_sent_at: float | None = None
    is_warmup: bool = False
    """Its requests warm the server up: no window opens, and it has no result."""

    def finished(self) -> StepFinished:
        return StepFinished(
            step=self.number,
            level=self.level,
            slo=self.plan.slo,
            was_open=self.is_open,
            opened_at=self.opens_at if self.requests is None else None,
            closed_at=self.closes_at,
        )


def _warms_by_requests(plan: LoadPlan) -> bool:
    """Whether a ramp whose steps are so many requests begins with some that do not count."""
    return plan.requests is not None and plan.warmup_requests > 0


class Conductor:
    """Decides; see the module's text for the rules.

    Args:
        first_step: number of the first step; above 1 where a session goes on.
    """

    def __init__(self, first_step: int = 1) -> None:
        self._plan = LoadPlan()
        self._state = LoadState.IDLE
        self._mode = LoadMode.NONE
        self._ramp_index = 0
        self._newest_step = first_step - 1
        self._current: _Step | None = None
        self._draining: dict[int, _Step] = {}
        """Steps that send nothing more and still have requests in flight."""
        self._paused_level = Level(0)
        self._cancel_at: float | None = None
        self._out: list[Output] = []

    # -- what a person asks for ----------------------------------------------------------------

    def offer(self, plan: LoadPlan, now: float) -> list[Output]:
        """Take the plan that keys use until a ramp brings its own; only while nothing runs."""
        self._plan = plan
        self._changed(now)
        return self._take()

    def start_ramp(self, plan: LoadPlan, now: float) -> list[Output]:
        """Begin a ramp at its first step."""
        self._close_current(now)
        self._plan = plan
        self._mode = LoadMode.RAMP
        self._ramp_index = 0
        self._begin_step(levels_of(plan)[0], now, is_warmup=_warms_by_requests(plan))
        return self._pass_time(now)

    def set_level(self, level: Level, now: float) -> list[Output]:
        """Change the load by hand; ends a ramp. A level that sends nothing stops."""
        if not level.sends:
            return self.stop(now)
        current = self._current
        if current and self._mode is LoadMode.MANUAL and current.level == level:
            return []
        self._close_current(now)
        self._mode = LoadMode.MANUAL
        self._begin_step(level, now)
        return self._pass_time(now)

    def pause(self, now: float) -> list[Output]:
        """Send nothing new; what is in flight may end."""
        current = self._current
        if current is None:
            return []
        self._paused_level = current.level
        self._close_current(now)
        self._out.append(SetLoad(step=current.number, concurrency=0))
        self._state = LoadState.PAUSED
        self._changed(now)
        return self._take()

    def resume(self, now: float) -> list[Output]:
        """Go on after :meth:`pause`."""
        if self._state is not LoadState.PAUSED:
            return []
        self._begin_step(self._paused_level, now)
        return self._pass_time(now)

    def stop(self, now: float) -> list[Output]:
        """End the load: what is in flight is cancelled."""
        if self._state is LoadState.IDLE:
            return []
        self._close_current(now)
        self._out.append(Cancel())
        self._cancel_at = None
        self._state = LoadState.DRAINING
        self._changed(now)
        self._rest_if_drained(now)
        return self._take()

    # -- what the worker says ------------------------------------------------------------------

    def on_started(self, step: int, at: float) -> None:
        """A request of this step was started."""
        current = self._current
        if current and current.number == step and current.first_sent_at is None:
            current.first_sent_at = at

    def on_drained(self, step: int, now: float) -> list[Output]:
        """All requests of this step have ended."""
        current = self._current
        if current is not None and current.number == step:
            # all the requests of a step that is so many requests
            self._current = None
            self._out.append(current.finished())
            self._next_step(current, now)
        elif (finished := self._draining.pop(step, None)) is not None:
            self._out.append(finished.finished())
            if current is not None and current.opens_at is None and not self._draining:
                self._decide_window(current, now + LEAD_S)
                self._changed(now)
        self._rest_if_drained(now)
        return self._pass_time(now)

    def on_lost(self, detail: str, now: float) -> list[Output]:
        """The worker is gone, and with it every request that was in flight."""
        if self._state is LoadState.IDLE:
            return []
        self._close_current(now)
        self._out = [step.finished() for step in self._draining.values()]
        self._draining.clear()
        self._rest(now, detail)
        return self._take()

    # -- time ----------------------------------------------------------------------------------

    @property
    def state(self) -> LoadState:
        """What the load does now."""
        return self._state

    @property
    def plan(self) -> LoadPlan:
        """The plan of the steps that run, or would."""
        return self._plan

    @property
    def newest_step(self) -> int:
        """Number of the step that began last."""
        return self._newest_step

    def deadline(self) -> float | None:
        """The moment at which :meth:`poll` has something to do; ``None``: nothing is due."""
        current = self._current
        if current is None:
            return self._cancel_at
        if current.is_warmup:
            return self._cancel_at
        if current.opens_at is None:
            return current.began_at + current.plan.timeout_s
        return current.closes_at if current.is_open else current.opens_at

    def poll(self, now: float) -> list[Output]:
        """Do what is due at this moment."""
        return self._pass_time(now)

    def _pass_time(self, now: float) -> list[Output]:
        current = self._current
        if current is not None and not current.is_warmup:
            if current.opens_at is None and now >= current.began_at + current.plan.timeout_s:
                self._decide_window(current, now + LEAD_S)
                self._changed(now)
            opens_at = current.opens_at
            if not current.is_open and opens_at is not None and now >= opens_at:
                self._open_window(current, opens_at)
            if current.is_open and current.closes_at is not None and now >= current.closes_at:
                self._close_current(now)
                self._next_step(current, now)
        if self._cancel_at is not None and now >= self._cancel_at:
            self._cancel_at = None
            self._out.append(Cancel())
        return self._take()

    # -- steps ---------------------------------------------------------------------------------

    def _begin_step(self, level: Level, now: float, *, is_warmup: bool = False) -> None:
        self._newest_step += 1
        is_ramp = self._mode is LoadMode.RAMP
        requests = self._plan.requests if is_ramp else None
        if is_warmup:
            requests = self._plan.warmup_requests
        step = _Step(
            self._newest_step, level, requests, self._plan, began_at=now, is_warmup=is_warmup
        )
        self._current = step
        self._cancel_at = None
        # a window that is known goes first, so that no request ends before the worker knows it
        if not is_warmup and (requests is not None or not self._draining):
            self._decide_window(step, now)
        self._out.append(
            SetLoad(
                step=step.number,
                concurrency=level.concurrency,
                rate=level.rate,
                requests=requests,
                begins_at=now + OPEN_LOOP_LEAD_S,
                replays=is_ramp and self._plan.trace is not None,
                spread_s=self._spread_s(requests),
            )
        )
        self._state = LoadState.WARMUP
        self._changed(now)

    def _spread_s(self, requests: int | None) -> float:
        """Half of the warm-up of a ramp's step: a server that is given hundreds of prompts at
        once answers them in lock-step, long after. A key acts at once."""
        if self._mode is LoadMode.RAMP and requests is None:
            return self._plan.warmup_s / 2
        return 0.0

    def _decide_window(self, step: _Step, earliest: float) -> None:
        if step.requests is not None:
            step.opens_at = step.began_at
        else:
            step.opens_at = max(step.began_at + step.plan.warmup_s, earliest)
            step.closes_at = step.opens_at + step.plan.step_s
        self._out.append(Window(step=step.number, opens_at=step.opens_at, closes_at=step.closes_at))

    def _open_window(self, step: _Step, at: float) -> None:
        step.is_open = True
        first_sent_at = step.began_at if step.first_sent_at is None else step.first_sent_at
        self._out.append(
            StepBegan(
                at=at,
                step=step.number,
                concurrency=step.level.concurrency,
                request_rate=step.level.rate,
                first_sent_at=first_sent_at,
            )
        )
        self._state = LoadState.RUNNING
        self._changed(at)

    def _close_current(self, now: float) -> None:
        """The current step, if there is one, sends nothing more; its window closes if it has not
        yet."""
        step, self._current = self._current, None
        if step is None:
            return
        self._draining[step.number] = step
        if step.closes_at is not None and now >= step.closes_at:
            return
        if step.opens_at is None or not step.is_open:
            step.opens_at = now
        step.closes_at = now
        self._out.append(Window(step=step.number, opens_at=step.opens_at, closes_at=now))

    def _next_step(self, before: _Step, now: float) -> None:
        """What follows when a step has run its course."""
        if self._mode is LoadMode.MANUAL or before.is_warmup:
            self._begin_step(before.level, now)
        elif self._ramp_index + 1 < len(levels_of(self._plan)):
            self._ramp_index += 1
            self._begin_step(levels_of(self._plan)[self._ramp_index], now)
        else:
            self._out.append(SetLoad(step=before.number, concurrency=0))
            self._cancel_at = now + self._plan.timeout_s
            self._state = LoadState.DRAINING
            self._changed(now)
            self._rest_if_drained(now)

    def _rest_if_drained(self, now: float) -> None:
        if self._state is LoadState.DRAINING and not self._draining:
            self._rest(now)

    def _rest(self, now: float, detail: str = "") -> None:
        self._state = LoadState.IDLE
        self._mode = LoadMode.NONE
        self._cancel_at = None
        self._changed(now, detail)

    # -- output --------------------------------------------------------------------------------

    def _changed(self, at: float, detail: str = "") -> None:
        current = self._current
        opens_at = closes_at = None
        level = self._paused_level if self._state is LoadState.PAUSED else Level(0)
        if current is not None:
            level = current.level
            opens_at, closes_at = current.opens_at, current.closes_at
            if opens_at is None:
                opens_at = current.began_at + current.plan.warmup_s
        self._out.append(
            LoadChanged(
                at=at,
                state=self._state,
                mode=self._mode,
                concurrency=level.concurrency,
                request_rate=level.rate,
                step=self._newest_step,
                window_opens_at=opens_at,
                window_closes_at=closes_at,
                plan=self._plan,
                detail=detail,
            )
        )

    def _take(self) -> list[Output]:
        taken, self._out = self._out, []
        return taken
