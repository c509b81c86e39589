"""Histories of a load, played with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pytest

from gpu_dash.load.conductor import LEAD_S, Conductor, Level, Output, StepFinished
from gpu_dash.load.protocol import Cancel, SetLoad, Window
from gpu_dash.model.events import LoadChanged, StepBegan
from gpu_dash.model.load import LoadMode, LoadPlan, LoadState, Slo

PLAN = LoadPlan(ramp=(2, 4), step_s=10.0, warmup_s=3.0, timeout_s=60.0)

T = TypeVar("T")


class Play:
    """A conductor, the moment, and all that came out; polls exactly when it asks to be."""

    def __init__(self) -> None:
        self.conductor = Conductor()
        self.now = 100.0
        self.log: list[Output] = []

    def hear(self, outputs: Iterable[Output]) -> list[Output]:
        heard = list(outputs)
        self.log += heard
        return heard

    def go(self, to: float) -> list[Output]:
        """Let the time pass up to this moment after the begin of the play."""
        heard: list[Output] = []
        end = 100.0 + to
        while (due := self.conductor.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            heard += self.hear(self.conductor.poll(self.now))
        self.now = end
        return heard

    def ramp(self, plan: LoadPlan = PLAN) -> list[Output]:
        return self.hear(self.conductor.start_ramp(plan, self.now))

    def key(self, concurrency: int) -> list[Output]:
        return self.hear(self.conductor.set_level(Level(concurrency), self.now))

    def drained(self, step: int) -> list[Output]:
        return self.hear(self.conductor.on_drained(step, self.now))

    def of(self, kind: type[T]) -> list[T]:
        return [output for output in self.log if isinstance(output, kind)]

    def windows(self) -> list[tuple[int, float, float | None]]:
        """Step, opening and closing, in seconds since the begin of the play."""
        return [
            (w.step, w.opens_at - 100, None if w.closes_at is None else w.closes_at - 100)
            for w in self.of(Window)
        ]

    def loads(self) -> list[tuple[int, int, int | None]]:
        return [(load.step, load.concurrency, load.requests) for load in self.of(SetLoad)]

    def finished(self) -> list[tuple[int, bool, float | None, float | None]]:
        return [
            (
                step.step,
                step.was_open,
                None if step.opened_at is None else step.opened_at - 100,
                None if step.closed_at is None else step.closed_at - 100,
            )
            for step in self.of(StepFinished)
        ]

    def state(self) -> LoadState:
        return self.last.state

    @property
    def last(self) -> LoadChanged:
        return self.of(LoadChanged)[-1]


@pytest.fixture
def play() -> Play:
    return Play()


def test_a_ramp_from_the_first_step_to_rest(play: Play) -> None:
    play.ramp()
    assert play.windows() == [(1, 3, 13)]
    assert (play.last.state, play.last.mode) == (LoadState.WARMUP, LoadMode.RAMP)
    play.go(3)
    assert play.state() is LoadState.RUNNING
    play.go(13)
    assert play.loads() == [(1, 2, None), (2, 4, None)]
    play.go(14)
    play.drained(1)
    assert play.windows()[-1] == (2, 16, 26)
    play.go(26)
    assert play.loads()[-1] == (2, 0, None)
    assert play.state() is LoadState.DRAINING
    play.go(28)
    play.drained(2)
    assert (play.last.state, play.last.mode, play.last.concurrency) == (
        LoadState.IDLE,
        LoadMode.NONE,
        0,
    )
    assert play.finished() == [(1, True, 3, 13), (2, True, 16, 26)]
    assert play.of(Cancel) == []
    assert play.conductor.deadline() is None


def test_the_window_is_told_before_the_load(play: Play) -> None:
    first, second, *_ = play.ramp()
    assert isinstance(first, Window)
    assert isinstance(second, SetLoad)


def test_the_beginning_of_a_window_is_an_event_with_its_first_send(play: Play) -> None:
    play.ramp()
    play.conductor.on_started(1, 100.25)
    play.conductor.on_started(1, 100.5)
    play.go(3)
    (began,) = play.of(StepBegan)
    assert (began.at, began.step, began.concurrency, began.first_sent_at) == (103, 1, 2, 100.25)


def test_a_slow_request_of_the_step_before_delays_the_window(play: Play) -> None:
    play.ramp()
    play.go(20)  # step 2 began at 13 and is warm since 16
    assert play.state() is LoadState.WARMUP
    assert play.last.window_opens_at == 116
    assert play.last.window_closes_at is None
    play.go(21)
    play.drained(1)
    assert play.windows()[-1] == pytest.approx((2, 21 + LEAD_S, 31 + LEAD_S))
    play.go(22)
    assert play.state() is LoadState.RUNNING


def test_a_request_that_never_ends_delays_the_window_no_longer_than_the_timeout(
    play: Play,
) -> None:
    play.ramp()
    play.go(13 + 60)
    assert play.windows()[-1] == pytest.approx((2, 73 + LEAD_S, 83 + LEAD_S))
    play.go(90)
    play.drained(1)  # too late to matter
    assert [step[0] for step in play.finished()] == [1]
    assert len(play.windows()) == 2


def test_all_earlier_steps_must_have_ended_not_only_the_last(play: Play) -> None:
    play.key(1)
    play.go(1)
    play.key(2)
    play.go(2)
    play.key(3)
    play.drained(2)
    assert play.last.window_closes_at is None
    play.drained(1)
    assert play.last.window_closes_at is not None


def test_a_key_in_an_open_window_closes_it_and_its_result_stands(play: Play) -> None:
    play.ramp()
    play.go(7)
    play.key(9)
    assert (1, 3, 7) in play.windows()
    assert play.loads()[-1] == (2, 9, None)
    assert (play.last.mode, play.last.concurrency) == (LoadMode.MANUAL, 9)
    play.go(8)
    play.drained(1)
    assert play.finished() == [(1, True, 3, 7)]


def test_a_key_in_the_warm_up_leaves_a_step_without_a_window(play: Play) -> None:
    play.ramp()
    play.go(2)
    play.key(9)
    assert play.windows()[-1] == (1, 2, 2)
    play.drained(1)
    assert play.finished() == [(1, False, 2, 2)]
    assert play.of(StepBegan) == []
    play.go(6)
    assert [began.step for began in play.of(StepBegan)] == [2]


def test_keys_in_quick_succession_are_steps_of_their_own(play: Play) -> None:
    for concurrency in (1, 2, 3):
        play.key(concurrency)
    assert play.loads() == [(1, 1, None), (2, 2, None), (3, 3, None)]
    play.drained(1)
    play.drained(2)
    assert [(step, was_open) for step, was_open, *_ in play.finished()] == [(1, False), (2, False)]


def test_a_load_by_hand_goes_on_in_steps_of_its_own(play: Play) -> None:
    play.hear(play.conductor.offer(PLAN, play.now))
    play.key(5)
    play.go(13)
    assert play.loads() == [(1, 5, None), (2, 5, None)]
    assert play.last.mode is LoadMode.MANUAL


def test_the_key_for_what_runs_already_changes_nothing(play: Play) -> None:
    play.key(5)
    assert play.key(5) == []


def test_the_same_concurrency_by_hand_ends_a_ramp(play: Play) -> None:
    play.ramp()
    play.key(2)
    assert play.last.mode is LoadMode.MANUAL
    assert play.loads() == [(1, 2, None), (2, 2, None)]


def test_pause_ends_the_step_and_resume_begins_the_next_where_it_was(play: Play) -> None:
    play.ramp()
    play.go(14)
    play.drained(1)
    play.go(20)
    play.hear(play.conductor.pause(play.now))
    assert play.loads()[-1] == (2, 0, None)
    assert (play.last.state, play.last.concurrency) == (LoadState.PAUSED, 4)
    play.drained(2)
    assert play.finished()[-1] == (2, True, 16, 20)
    assert play.state() is LoadState.PAUSED
    assert play.go(50) == []
    play.hear(play.conductor.resume(play.now))
    assert play.loads()[-1] == (3, 4, None)
    play.go(63)
    assert play.state() is LoadState.DRAINING


def test_pause_and_resume_do_nothing_where_there_is_nothing(play: Play) -> None:
    assert play.conductor.pause(play.now) == []
    assert play.conductor.resume(play.now) == []
    play.ramp()
    assert play.conductor.resume(play.now) == []
    play.hear(play.conductor.pause(play.now))
    assert play.conductor.pause(play.now) == []


@pytest.mark.parametrize("key", ["stop", "zero"])
def test_stop_closes_the_window_cancels_and_rests_when_all_has_ended(play: Play, key: str) -> None:
    play.ramp()
    play.go(5)
    heard = play.key(0) if key == "zero" else play.hear(play.conductor.stop(play.now))
    assert any(isinstance(output, Cancel) for output in heard)
    assert play.state() is LoadState.DRAINING
    play.drained(1)
    assert play.finished() == [(1, True, 3, 5)]
    assert play.state() is LoadState.IDLE
    assert play.conductor.stop(play.now) == []


def test_stop_in_a_pause_with_nothing_in_flight_rests_at_once(play: Play) -> None:
    play.ramp()
    play.hear(play.conductor.pause(play.now))
    play.drained(1)
    play.hear(play.conductor.stop(play.now))
    assert play.state() is LoadState.IDLE


def test_after_the_last_step_what_does_not_end_is_cancelled_after_the_timeout(play: Play) -> None:
    play.ramp(LoadPlan(ramp=(2,), step_s=10, warmup_s=0, timeout_s=60))
    play.go(10 + 59.9)
    assert play.of(Cancel) == []
    play.go(10 + 60)
    assert len(play.of(Cancel)) == 1
    assert play.conductor.deadline() is None
    play.drained(1)
    assert play.state() is LoadState.IDLE


def test_steps_of_so_many_requests_begin_when_the_last_has_ended(play: Play) -> None:
    play.ramp(LoadPlan(ramp=(2, 4), requests=30, warmup_s=3, slo=Slo(ttft_s=1)))
    assert play.loads() == [(1, 2, 30)]
    assert play.windows() == [(1, 0, None)]
    assert play.state() is LoadState.RUNNING
    play.go(500)
    assert play.loads() == [(1, 2, 30)]
    play.drained(1)
    assert play.loads()[-1] == (2, 4, 30)
    assert play.windows()[-1] == (2, 500, None)
    assert play.state() is LoadState.RUNNING
    play.go(600)
    play.drained(2)
    assert play.state() is LoadState.IDLE
    assert play.finished() == [(1, True, None, None), (2, True, None, None)]
    assert play.of(StepFinished)[0].slo == Slo(ttft_s=1)


def test_requests_that_warm_up_come_before_the_first_step_and_have_no_window(play: Play) -> None:
    play.ramp(LoadPlan(ramp=(1, 2), requests=5, warmup_requests=1))
    assert play.loads() == [(1, 1, 1)]
    assert play.windows() == []
    assert play.state() is LoadState.WARMUP
    play.go(500)
    play.drained(1)
    assert play.loads()[-1] == (2, 1, 5)
    assert play.windows() == [(2, 500, None)]
    play.drained(2)
    assert play.loads()[-1] == (3, 2, 5)
    play.drained(3)
    assert play.state() is LoadState.IDLE
    assert [(step, was_open) for step, was_open, *_ in play.finished()] == [
        *((1, False), (2, True), (3, True))
    ]


def test_a_key_ends_a_step_of_so_many_requests(play: Play) -> None:
    play.ramp(LoadPlan(ramp=(2, 4), requests=30))
    play.go(20)
    play.key(3)
    assert (1, 0, 20) in play.windows()
    assert play.loads()[-1] == (2, 3, None)
    play.drained(1)
    assert play.finished() == [(1, True, None, 20)]
    assert play.loads()[-1] == (2, 3, None)


def test_steps_are_numbered_across_ramps(play: Play) -> None:
    play.ramp(LoadPlan(ramp=(1,), step_s=1, warmup_s=0))
    play.go(1)
    play.drained(1)
    play.ramp()
    assert play.loads()[-1] == (2, 2, None)


def test_a_session_that_goes_on_goes_on_with_its_numbers() -> None:
    conductor = Conductor(first_step=8)
    assert [o.step for o in conductor.set_level(Level(1), 0.0) if isinstance(o, SetLoad)] == [8]


def test_a_new_ramp_takes_over_from_whatever_runs(play: Play) -> None:
    play.ramp()
    play.go(5)
    play.ramp(LoadPlan(ramp=(7,), step_s=10, warmup_s=0, timeout_s=60))
    assert play.loads() == [(1, 2, None), (2, 7, None)]
    play.drained(1)
    play.go(30)
    assert play.state() is LoadState.DRAINING


def test_a_late_poll_opens_and_closes_a_window_by_its_own_times(play: Play) -> None:
    play.ramp()
    play.now = 120.0
    play.hear(play.conductor.poll(play.now))
    (began,) = play.of(StepBegan)
    assert began.at == 103
    assert play.loads()[-1] == (2, 4, None)
    play.drained(1)
    assert play.finished() == [(1, True, 3, 13)]


def test_a_lost_worker_ends_all_steps_and_says_why(play: Play) -> None:
    play.ramp()
    play.go(15)
    play.hear(play.conductor.on_lost("it died", play.now))
    assert play.finished() == [(1, True, 3, 13), (2, False, 15, 15)]
    assert (play.last.state, play.last.detail) == (LoadState.IDLE, "it died")
    assert play.conductor.deadline() is None
    assert play.conductor.on_lost("again", play.now) == []
    play.key(3)
    assert play.loads()[-1] == (3, 3, None)


def test_the_offered_plan_is_what_a_screen_is_told(play: Play) -> None:
    (changed,) = play.hear(play.conductor.offer(PLAN, play.now))
    assert isinstance(changed, LoadChanged)
    assert (changed.state, changed.plan) == (LoadState.IDLE, PLAN)


def test_a_ramp_of_rates_asks_for_requests_per_second() -> None:
    play = Play()
    play.ramp(LoadPlan(rates=(2.0, 8.0), step_s=10.0, warmup_s=3.0))
    play.go(14)
    play.drained(1)
    play.go(40)
    loads = [(load.step, load.concurrency, load.rate) for load in play.of(SetLoad)]
    assert loads == [(1, 0, 2.0), (2, 0, 8.0), (2, 0, None)]
    assert [(b.concurrency, b.request_rate) for b in play.of(StepBegan)] == [(0, 2.0), (0, 8.0)]
    assert {changed.request_rate for changed in play.of(LoadChanged)} == {2.0, 8.0, None}


def test_only_a_ramp_with_a_warm_up_fills_its_places_slowly() -> None:
    play = Play()
    play.ramp()
    play.key(5)
    play.ramp(LoadPlan(ramp=(2,), warmup_s=3.0, requests=7))
    assert [load.spread_s for load in play.of(SetLoad)] == [1.5, 0.0, 0.0]


def test_a_rate_set_by_hand_begins_a_step_and_goes_on(play: Play) -> None:
    play.ramp()
    play.go(5)
    play.hear(play.conductor.set_level(Level(0, 4.0), play.now))
    assert play.of(SetLoad)[-1].rate == 4.0
    assert (play.last.mode, play.last.concurrency, play.last.request_rate) == (
        LoadMode.MANUAL, 0, 4.0,
    )  # fmt: skip
    assert play.hear(play.conductor.set_level(Level(0, 4.0), play.now)) == []
    play.drained(1)
    play.go(60)
    assert [(load.step, load.rate) for load in play.of(SetLoad)][-2:] == [(2, 4.0), (3, 4.0)]
    play.key(8)
    assert (play.of(SetLoad)[-1].rate, play.last.request_rate) == (None, None)


def test_a_rate_that_was_paused_goes_on_at_that_rate(play: Play) -> None:
    play.hear(play.conductor.set_level(Level(0, 2.5), play.now))
    play.hear(play.conductor.pause(play.now))
    assert (play.state(), play.last.request_rate) == (LoadState.PAUSED, 2.5)
    play.hear(play.conductor.resume(play.now))
    assert play.of(SetLoad)[-1].rate == 2.5
