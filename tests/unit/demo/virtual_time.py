"""The simulated engine under a closed loop, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpu_dash.demo.engine import Engine, Job
from gpu_dash.demo.rack import Rack, Work


@dataclass
class Ear:
    """Listens to a job and keeps what it heard."""

    tokens: int = 0
    errors: list[str] = field(default_factory=list)

    def token(self, job: Job) -> None:
        self.tokens += 1

    def aborted(self, job: Job) -> None:
        self.errors.append("aborted")

    def failed(self, job: Job, message: str) -> None:
        self.errors.append(message)


def request(prompt_tokens: int = 512, output_tokens: int = 128) -> Job:
    return Job(prompt_tokens, output_tokens, "length", Ear())


@dataclass
class ClosedLoop:
    """Keeps a number of requests open; the clock moves by the engine's own steps."""

    engine: Engine
    rack: Rack | None = None
    clock_ratio: float = 1.0
    now: float = 0.0

    def run(self, concurrency: int, seconds: float) -> float:
        """Offer the load for a while; returns output tokens per second."""
        end = self.now + seconds
        began, made = self.now, self.engine.stats.generation_tokens
        serial = 0
        while self.now < end:
            while len(self.engine.running) + len(self.engine.waiting) < concurrency:
                serial += 1
                job = request(output_tokens=64 + serial * 79 % 129)
                self.engine.submit(job, self.now)
            self.step()
        return (self.engine.stats.generation_tokens - made) / (self.now - began)

    def step(self) -> list[Job]:
        """One step of the engine, and of the cards if there are any."""
        ratio = self.clock_ratio if self.rack is None else self.rack.clock_ratio
        step = self.engine.plan(self.now, ratio)
        assert step is not None
        if self.rack is not None:
            self.rack.advance(step.duration_s, Work(step.intensity))
        self.now += step.duration_s
        return self.engine.finish(step, self.now)
