"""Step accounting: what the load says of a step and what the cards did in its window, joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpu_dash.analysis.cards import CardWatch
from gpu_dash.analysis.idle_power import IdlePower
from gpu_dash.analysis.knee import knee
from gpu_dash.analysis.step_gpus import StepGpuWindow
from gpu_dash.analysis.steps import summarize_step
from gpu_dash.analysis.verdict import Verdict, judge
from gpu_dash.load.driver import FinishedStep
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.events import Event, GpuSamples, LoadChanged, StepBegan, StepEnded
from gpu_dash.model.load import LoadState, StepResult


class StepAccount:
    """Makes a :class:`~gpu_dash.model.load.StepResult` of every step of a session.

    Args:
        anchor: the session's clock.
        visible_gpus: the server's cards; ``None`` if it is not known which.
        publish: takes :class:`~gpu_dash.model.events.StepEnded`.
    """

    def __init__(
        self,
        anchor: ClockAnchor,
        visible_gpus: tuple[int, ...] | None,
        publish: Callable[[Event], None],
    ) -> None:
        self.results: list[StepResult] = []
        self._anchor = anchor
        self._visible_gpus = visible_gpus
        self._publish = publish
        self._window = StepGpuWindow()
        self._idle_power = IdlePower()
        self._cards = CardWatch()

    def take(self, event: Event) -> None:
        """Take an event of the road; those of no concern are ignored."""
        self._cards.fold(event)
        match event:
            case GpuSamples():
                self._window.add(event)
                self._idle_power.add(event)
            case StepBegan(at=at):
                self._window.begin(at, self._visible_gpus)
            case LoadChanged(at=at, state=state):
                self._idle_power.set_loaded(state is not LoadState.IDLE)
                if state is not LoadState.RUNNING:
                    self._window.close(at)
            case _:
                pass

    def restore(self, history: Iterable[Event]) -> None:
        """Take over what an earlier agent recorded of this session."""
        for event in history:
            self._cards.fold(event)
            if isinstance(event, StepEnded):
                self.results.append(event.result)

    def finish(self, step: FinishedStep) -> None:
        """All requests of a step have ended: publish what it came to."""
        result = summarize_step(
            step=step.step,
            concurrency=step.concurrency,
            requests=step.requests,
            opened_at=step.opened_at,
            closed_at=step.closed_at,
            anchor=self._anchor,
            gaps=step.gaps,
            gpus=self._window.end(step.closed_at),
            idle_watts=self._idle_power.watts(self._visible_gpus),
            slo=step.slo,
            request_rate=step.request_rate,
            client_bound=step.client_bound,
        )
        self.results.append(result)
        self._publish(StepEnded(at=step.ended_at, result=result))

    def verdict(self) -> Verdict:
        """The three conditions over the session so far."""
        return judge(self.results, self._cards.records(), visible_gpus=self._visible_gpus)

    def knee(self) -> StepResult | None:
        """The step from which more load gains little; ``None`` if it never flattened."""
        return knee(self.results)
