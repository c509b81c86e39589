"""Engine and cards in real time: the one place where the stand-in's model meets the clock.

There is no task per stream. A step of the engine is one timer; when it fires, every stream of
the batch gets its token. The load of the cards is constant between two such moments, so they
are moved on exactly there, and by a slow tick when nothing else happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import Enum

from gpu_dash.demo.engine import Engine, Job, Step
from gpu_dash.demo.rack import Rack, Work

_TICK_S = 0.1
_MOST_LAG_S = 0.25
"""A step that ended late lets the next one end early, up to this much: a busy host costs smooth
streams, not throughput."""

ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."


class EngineState(Enum):
    """How the simulated engine fares."""

    ALIVE = "alive"
    FROZEN = "frozen"
    """No step ends any more, and nobody is told: what a hung collective looks like."""
    DEAD = "dead"


class Simulation:
    """The engine with its queue, and the rack, on the event loop's clock."""

    def __init__(
        self,
        engine: Engine,
        rack: Rack,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.engine = engine
        self.rack = rack
        self.state = EngineState.ALIVE
        self._loop = loop
        self._step: Step | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._stuck_gpu: int | None = None
        self._rack_moved = loop.time()
        self._ticker = loop.call_later(_TICK_S, self._tick)

    def submit(self, job: Job) -> None:
        """Queue a request; the engine starts when it is idle."""
        now = self._loop.time()
        self.engine.submit(job, now)
        if self._step is None:
            self._begin_step(now)

    def abort(self, job: Job) -> None:
        """Take a request out whose client is gone."""
        self.engine.abort(job, self._loop.time())

    def abort_all(self) -> None:
        """End every request because the server stops, and tell its client."""
        for job in [*self.engine.running, *self.engine.waiting]:
            self.abort(job)
            job.listener.aborted(job)

    def freeze(self, stuck_gpu: int) -> None:
        """Let the process of one card hang: the others wait for it in the next collective."""
        if self.state is EngineState.ALIVE:
            self._halt(EngineState.FROZEN)
            self._stuck_gpu = stuck_gpu

    def unfreeze(self) -> None:
        """Let the hung process go on: the step that hung ends now."""
        if self.state is EngineState.FROZEN:
            self._move_rack()
            self.state = EngineState.ALIVE
            self._stuck_gpu = None
            if self._step is not None:
                self._end_step()

    def die(self, message: str = ENGINE_DEAD) -> int:
        """End the engine for good; open requests get an error. Returns how many there were."""
        self._halt(EngineState.DEAD)
        self._step = None
        jobs = self.engine.drop_all()
        for job in jobs:
            job.listener.failed(job, message)
        return len(jobs)

    def close(self) -> None:
        """Stop the timers."""
        self._halt(EngineState.DEAD)
        self._ticker.cancel()

    def gpus(self) -> Mapping[str, object]:
        """The cards at this moment, as ``GET /sim/gpus`` shows them."""
        self._move_rack()
        return self.rack.document()

    def _begin_step(self, start: float) -> None:
        """Begin what is to be done next, as if at ``start``; a frozen engine never ends it."""
        if self.state is EngineState.DEAD:
            return
        self._move_rack()
        self._step = self.engine.plan(self._loop.time(), self.rack.clock_ratio)
        if self._step is not None and self.state is EngineState.ALIVE:
            self._deadline = start + self._step.duration_s
            self._timer = self._loop.call_at(self._deadline, self._end_step)

    def _end_step(self) -> None:
        self._move_rack()
        step, self._step = self._step, None
        assert step is not None, "a step ends only while one runs"
        now = self._loop.time()
        for job in self.engine.finish(step, now):
            job.listener.token(job)
        self._begin_step(max(self._deadline, now - _MOST_LAG_S))

    def _halt(self, state: EngineState) -> None:
        self._move_rack()
        self.state = state
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._move_rack()
        self._ticker = self._loop.call_later(_TICK_S, self._tick)

    def _move_rack(self) -> None:
        now = self._loop.time()
        elapsed_s, self._rack_moved = now - self._rack_moved, now
        work = None if self._step is None else Work(self._step.intensity)
        self.rack.advance(elapsed_s, work, self._stuck_gpu)
