"""How many tokens a simulated engine makes in which time: continuous batching, no clock of its own.

Every step decodes one token for each running request and, within a budget, reads prompts that
are not read yet. A step takes a fixed time plus a share for each sequence and each prompt token,
all divided by the clock of the slowest card. So throughput rises with concurrency and flattens,
a prompt holds up the streams beside it, and a throttled card makes everything slower. The
defaults resemble a 32B model on four cards: 12 ms between tokens alone, 19 ms among 32 streams.

The caller owns the time: :meth:`Engine.plan` says what the next step does and how long it takes,
:meth:`Engine.finish` is called when that time has passed. Nothing here is random.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from gpu_dash.demo.stats import EngineStats


@dataclass(frozen=True, slots=True)
class Capacity:
    """The constants of the model."""

    step_base_s: float = 0.0118
    step_per_sequence_s: float = 0.00022
    step_per_prompt_token_s: float = 0.00003
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    kv_cache_tokens: int = 851_968

    def step_s(self, sequences: int, prompt_tokens: int, clock_ratio: float) -> float:
        """Duration of a step that decodes ``sequences`` tokens and reads ``prompt_tokens``."""
        return (
            self.step_base_s
            + self.step_per_sequence_s * sequences
            + self.step_per_prompt_token_s * prompt_tokens
        ) / clock_ratio

    def intensity(self, sequences: int, prompt_tokens: int) -> float:
        """0 to 1: how hard the cards work in such a step; full from 32 sequences on."""
        return min(1.0, 0.42 + 0.58 * (sequences + prompt_tokens / 64) / 32)


class Listener(Protocol):
    """Who gets the tokens of a request."""

    def token(self, job: Job) -> None:
        """``job`` has one token more; it was the last one if ``job.finish_reason`` is set."""
        ...

    def aborted(self, job: Job) -> None:
        """The server stops; no token follows."""
        ...

    def failed(self, job: Job, message: str) -> None:
        """The engine died under the request; no token follows."""
        ...


@dataclass(eq=False, slots=True)
class Job:
    """One request in the engine."""

    prompt_tokens: int
    output_tokens: int
    """How many it will make before it ends by itself."""
    ends_with: str
    """Its finish reason then: ``length`` or ``stop``."""
    listener: Listener
    arrived: float = 0.0
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    generated: int = 0
    finish_reason: str | None = None
    unread_tokens: int = 0
    """Tokens of its context that are not in the KV cache yet."""

    @property
    def context_tokens(self) -> int:
        """Tokens it holds in the KV cache when all of it is read."""
        return self.prompt_tokens + self.generated


@dataclass(frozen=True, slots=True)
class Step:
    """One pass of the model."""

    decoding: tuple[Job, ...]
    prefills: tuple[tuple[Job, int], ...]
    duration_s: float
    intensity: float


@dataclass(slots=True)
class Engine:
    """Queue, running batch and KV cache."""

    capacity: Capacity
    stats: EngineStats = field(default_factory=EngineStats)
    waiting: deque[Job] = field(default_factory=deque)
    running: list[Job] = field(default_factory=list)

    @property
    def kv_cache_usage(self) -> float:
        """0 to 1."""
        return self._kv_tokens() / self.capacity.kv_cache_tokens

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self.running and not self.waiting

    def submit(self, job: Job, now: float) -> None:
        """Queue a request."""
        job.arrived = now
        job.unread_tokens = job.prompt_tokens
        self.waiting.append(job)

    def abort(self, job: Job, now: float) -> None:
        """Take a request out, whatever it is doing."""
        if job.finish_reason is None:
            self._end(job, "abort", now)
            if job in self.waiting:
                self.waiting.remove(job)
            else:
                self.running.remove(job)

    def plan(self, now: float, clock_ratio: float) -> Step | None:
        """What the next step does; ``None`` when there is nothing to do."""
        self._preempt()
        decoding = tuple(job for job in self.running if job.unread_tokens == 0)
        budget = self.capacity.max_num_batched_tokens - len(decoding)
        prefills = []
        for job in self.running:
            if job.unread_tokens and budget > 0:
                taken = min(job.unread_tokens, budget)
                prefills.append((job, taken))
                budget -= taken
        while budget > 0 and self._may_admit():
            job = self.waiting.popleft()
            self.running.append(job)
            if job.scheduled is None:
                job.scheduled = now
                self.stats.request_queue_time.observe(now - job.arrived)
            taken = min(job.unread_tokens, budget)
            prefills.append((job, taken))
            budget -= taken
        if not self.running:
            return None
        prompt_tokens = sum(taken for _, taken in prefills)
        return Step(
            decoding=decoding,
            prefills=tuple(prefills),
            duration_s=self.capacity.step_s(len(decoding), prompt_tokens, clock_ratio),
            intensity=self.capacity.intensity(len(decoding), prompt_tokens),
        )

    def finish(self, step: Step, now: float) -> list[Job]:
        """Do what a step planned, and return the jobs that got a token, in their order.

        A job that was aborted in the meantime gets none.
        """
        advanced = []
        tokens = 0
        for job, taken in step.prefills:
            if job.finish_reason is None:
                tokens += taken
                job.unread_tokens -= taken
                if job.unread_tokens == 0:
                    advanced.append(job)
                    if job.first_token is None:
                        self.stats.prompt_tokens += job.prompt_tokens
        decoded = [job for job in step.decoding if job.finish_reason is None]
        advanced += decoded
        self.stats.iteration_tokens.observe(tokens + len(decoded))
        for job in advanced:
            self._add_token(job, now)
        if any(job.finish_reason for job in advanced):
            self.running = [job for job in self.running if job.finish_reason is None]
        return advanced

    def drop_all(self) -> list[Job]:
        """Empty queue and batch because the engine is dead, and return what was in them."""
        jobs = [*self.running, *self.waiting]
        for job in jobs:
            job.finish_reason = "error"
            self.stats.finished["error"] += 1
        self.running.clear()
        self.waiting.clear()
        return jobs

    def _kv_tokens(self) -> int:
        return sum(job.context_tokens for job in self.running)

    def _may_admit(self) -> bool:
        if not self.waiting or len(self.running) >= self.capacity.max_num_seqs:
            return False
        new_tokens = len(self.running) + 1
        needed = self._kv_tokens() + self.waiting[0].context_tokens + new_tokens
        return needed <= self.capacity.kv_cache_tokens or not self.running

    def _preempt(self) -> None:
        """Throw the youngest requests back while the cache cannot hold one token more of each."""
        while (
            len(self.running) > 1
            and self._kv_tokens() + len(self.running) > self.capacity.kv_cache_tokens
        ):
            job = self.running.pop()
            job.unread_tokens = job.context_tokens
            self.waiting.appendleft(job)
            self.stats.preemptions += 1

    def _add_token(self, job: Job, now: float) -> None:
        stats = self.stats
        stats.generation_tokens += 1
        job.generated += 1
        if job.last_token is None:
            job.first_token = now
            stats.time_to_first_token.observe(now - job.arrived)
            if job.scheduled is not None:
                stats.request_prefill_time.observe(now - job.scheduled)
        else:
            stats.inter_token_latency.observe(now - job.last_token)
        job.last_token = now
        if job.generated >= job.output_tokens:
            self._end(job, job.ends_with, now)

    def _end(self, job: Job, reason: str, now: float) -> None:
        stats = self.stats
        job.finish_reason = reason
        stats.finished[reason] += 1
        if reason == "abort":
            return
        stats.e2e_request_latency.observe(now - job.arrived)
        stats.request_prompt_tokens.observe(job.prompt_tokens)
        stats.request_generation_tokens.observe(job.generated)
        if job.first_token is not None:
            stats.request_decode_time.observe(now - job.first_token)
