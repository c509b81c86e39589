"""Whether a server that says it is well has stopped working.

A worker that hangs leaves ``/health`` at 200 for as long as anybody looks, and NCCL gives up after
ten minutes. What tells it apart within seconds: requests are open, the engine's step counter
stands still and no token arrives, while the cards that wait for the hung one spin at 100 % and a
fraction of their power. How long silence may last follows from what the server was seen to take
before, and from the longest prompt that may be in the works.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping

from gpu_dash.model.events import (
    Event,
    Finding,
    GpuSamples,
    LoadChanged,
    LoadTick,
    LogLines,
    ServerChanged,
    ServerMetricsRead,
)
from gpu_dash.model.gpu import GpuSample
from gpu_dash.model.log import Severity
from gpu_dash.model.server import ServerMetrics, ServerState
from gpu_dash.server.stages import stage_of

SILENCE_S = 8.0
"""Decoding, a healthy server is never silent for so long."""
CLEAR_SILENCE_S = 5.0
"""The same where the cards show the picture of a hung collective."""
PICTURE_S = 3.0
"""For so long without a break the picture must stand."""
PATIENCE = 3.0
"""A step may take this many times what the slowest of the last ones took."""
SLOWEST_PREFILL_TOKENS_PER_S = 100.0
"""Taken for the prefill rate as long as none has been measured."""
CHARACTERS_PER_TOKEN = 3
NEWCOMER_S = 2.0
"""A step that ended this long after a request came was made with it: its prefill was begun, in
pieces if it is long."""
COMPILING_S = 60.0
"""So long after its log spoke of compiling, a server may be silent."""
RECENT_GAPS = 20
LONGEST_PROMPT_TOKENS = 32_768
"""Of requests that are not ours, where the log does not say what the server takes."""

_COMPILING = frozenset({"compiling", "capturing CUDA graphs"})
_MAX_MODEL_LEN = re.compile(r"Using max model len (\d+)")

_WAITS_PERCENT = 95.0
_IDLE_PERCENT = 5.0
_SPINNING_SHARE = 0.35
"""Of the power limit: a card that computes draws more, one that only waits in a collective less
(23 % on an H200)."""


class StuckWatch:
    """Takes the events of a session and says when the server has got stuck, and when it goes on.

    Args:
        visible_gpus: the server's cards; ``None``: all.
    """

    def __init__(self, visible_gpus: tuple[int, ...] | None = None) -> None:
        self._visible_gpus = visible_gpus
        self._longest_prompt_tokens = LONGEST_PROMPT_TOKENS
        self._our_prompt_tokens = 0
        self._our_requests = 0
        self._is_ready = False
        self._compiling_at = float("-inf")
        self._metrics: ServerMetrics | None = None
        self._metrics_at = 0.0
        self._prefill_rate: float | None = None
        self._gaps: deque[float] = deque(maxlen=RECENT_GAPS)
        self._progress_at: float | None = None
        """When something was last seen to move, or when the first request came; ``None`` while
        no request is open."""
        self._newcomer_at = float("-inf")
        self._cards: dict[int, GpuSample] = {}
        self._picture_since: float | None = None
        self._stuck_since: float | None = None

    def take(self, event: Event) -> Finding | None:
        """Take an event of the road; the finding if it is the one that decides."""
        match event:
            case ServerChanged(status=status):
                self._is_ready = status.state is ServerState.READY
                if not self._is_ready:
                    self._forget()
            case LogLines(lines=lines):
                for line in lines:
                    self._read_line(line.text, event.at)
            case LoadChanged(plan=plan) if plan is not None:
                self._our_prompt_tokens = plan.prompt_tokens or (
                    len(plan.prompt or "") // CHARACTERS_PER_TOKEN
                )
            case LoadTick():
                if event.in_flight > self._our_requests:
                    self._newcomer_at = event.at
                self._our_requests = event.in_flight
                if self._progress_at is None and event.in_flight and self._metrics is not None:
                    self._progress_at = event.at
                if event.output_tokens or event.requests_ok:
                    return self._moved(event.at)
            case ServerMetricsRead(metrics=metrics):
                return self._read(metrics, event.at)
            case GpuSamples(samples=samples):
                self._look(samples, event.at)
            case _:
                return None
        return self._judge(event.at)

    # -- what is seen --------------------------------------------------------------------------

    def _read(self, metrics: ServerMetrics, at: float) -> Finding | None:
        before, seconds = self._metrics, at - self._metrics_at
        self._metrics, self._metrics_at = metrics, at
        if not self._open_requests():
            self._progress_at = None
            return None
        if before is None:
            self._progress_at, self._newcomer_at = at, at
            return None
        if _open_requests(metrics) > _open_requests(before):
            self._newcomer_at = at
        prompt_tokens = _grown(before.prompt_tokens_total, metrics.prompt_tokens_total)
        if prompt_tokens and seconds > 0:
            self._prefill_rate = max(self._prefill_rate or 0.0, prompt_tokens / seconds)
        has_moved = prompt_tokens or any(
            _grown(getattr(before, name), getattr(metrics, name))
            for name in ("iterations_total", "generation_tokens_total")
        )
        # Fewer open requests are no sign of life: their callers may have given up.
        if has_moved:
            return self._moved(at)
        if self._progress_at is None:
            self._progress_at = at
        return self._judge(at)

    def _open_requests(self) -> int:
        """How many are open, as the page and our own streams say: an engine that hangs does not
        report any more what has reached it."""
        assert self._metrics is not None
        return max(_open_requests(self._metrics), self._our_requests)

    def _read_line(self, text: str, at: float) -> None:
        stage = stage_of(text)
        if stage is None:
            return
        if stage.name in _COMPILING:
            self._compiling_at = at
            return
        self._compiling_at = float("-inf")
        told = _MAX_MODEL_LEN.search(text)
        if told is not None:
            self._longest_prompt_tokens = int(told[1])

    def _moved(self, at: float) -> Finding | None:
        if self._progress_at is not None and at > self._progress_at:
            self._gaps.append(at - self._progress_at)
        if self._metrics is not None:
            self._progress_at = at
        return self._went_on(at)

    def _look(self, samples: tuple[GpuSample, ...], at: float) -> None:
        for sample in samples:
            if self._visible_gpus is None or sample.gpu in self._visible_gpus:
                self._cards[sample.gpu] = sample
        if _idle_one(self._cards) is None:
            self._picture_since = None
        elif self._picture_since is None:
            self._picture_since = at

    # -- what is made of it --------------------------------------------------------------------

    def _judge(self, at: float) -> Finding | None:
        if (
            not self._is_ready
            or self._progress_at is None
            or self._stuck_since is not None
            or at - self._compiling_at < COMPILING_S
        ):
            return None
        silence = at - self._progress_at
        is_clear = self._picture_since is not None and at - self._picture_since >= PICTURE_S
        if silence < (self._shortest(CLEAR_SILENCE_S) if is_clear else self._allowed()):
            return None
        self._stuck_since = self._progress_at
        return self._stuck(at, silence)

    def _shortest(self, seconds: float) -> float:
        return max(seconds, PATIENCE * max(self._gaps, default=0.0))

    def _allowed(self) -> float:
        """How long silence may last now."""
        allowed = self._shortest(SILENCE_S)
        assert self._progress_at is not None
        if self._progress_at - self._newcomer_at >= NEWCOMER_S:
            return allowed
        rate = self._prefill_rate or SLOWEST_PREFILL_TOKENS_PER_S
        return max(allowed, PATIENCE * self._open_prompt_tokens() / rate)

    def _open_prompt_tokens(self) -> int:
        """Tokens of the longest prompt that may be in the works."""
        assert self._metrics is not None
        if _open_requests(self._metrics) > self._our_requests or not self._our_prompt_tokens:
            return self._longest_prompt_tokens
        return self._our_prompt_tokens

    def _stuck(self, at: float, silence: float) -> Finding:
        message = (
            f"stuck: no token and no step of the engine for {silence:.0f} s "
            f"with {self._open_requests()} requests open, though /health says that all "
            "is well"
        )
        odd = _idle_one(self._cards)
        first_check = "`py-spy dump` of the workers; XID in the kernel log; then restart the server"
        if odd is not None:
            others = [card for card in self._cards.values() if card.gpu != odd.gpu]
            waiting = ", ".join(_reading(card) for card in others if _waits(card))
            message += f". {_reading(odd)} takes no part, {waiting} only waits for it"
            first_check = (
                f"the worker of GPU {odd.gpu}: does its process run (state T is stopped, D waits "
                "in the driver); XID and temperature of that card; then restart the server"
            )
        return Finding(
            at=at,
            kind="stuck",
            severity=Severity.CRITICAL,
            source="server",
            subject="" if odd is None else f"gpu:{odd.gpu}",
            message=message,
            first_check=first_check,
        )

    def _went_on(self, at: float) -> Finding | None:
        since, self._stuck_since = self._stuck_since, None
        if since is None:
            return None
        self._gaps.clear()
        return Finding(
            at=at,
            kind="stuck",
            severity=Severity.INFO,
            source="server",
            message=f"the server goes on after {at - since:.0f} s of silence",
        )

    def _forget(self) -> None:
        self._metrics = self._progress_at = self._picture_since = self._stuck_since = None
        self._gaps.clear()
        self._our_requests = 0


def _open_requests(metrics: ServerMetrics) -> int:
    return (metrics.running_requests or 0) + (metrics.waiting_requests or 0)


def _grown(before: float | None, after: float | None) -> float:
    return 0.0 if before is None or after is None else max(0.0, after - before)


def _waits(card: GpuSample) -> bool:
    """At 100 % and a fraction of its power: a kernel spins until the others come."""
    if card.power_watts is None or not card.power_limit_watts:
        return False
    return (
        card.utilization_percent is not None
        and card.utilization_percent >= _WAITS_PERCENT
        and card.power_watts <= _SPINNING_SHARE * card.power_limit_watts
    )


def _idle_one(cards: Mapping[int, GpuSample]) -> GpuSample | None:
    """The one card that does nothing while all others wait; ``None``: no such picture."""
    idle = [
        card
        for card in cards.values()
        if card.utilization_percent is not None and card.utilization_percent <= _IDLE_PERCENT
    ]
    waiting = [card for card in cards.values() if _waits(card)]
    if len(idle) == 1 and waiting and len(idle) + len(waiting) == len(cards):
        return idle[0]
    return None


def _reading(card: GpuSample) -> str:
    def value(number: float | None, unit: str) -> str:
        return "" if number is None else f"{number:.0f} {unit}"

    words = [
        value(card.utilization_percent, "%"),
        value(card.power_watts, "W"),
        value(card.temperature_celsius, "°C"),
    ]
    return f"GPU {card.gpu} ({', '.join(word for word in words if word)})"
