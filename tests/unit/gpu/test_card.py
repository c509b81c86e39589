"""A card's quantities: not offered, failing, lost, back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_dash.gpu.backend import ThrottleCounters
from gpu_dash.gpu.card import (
    COUNTERS,
    LOST_RETRY_S,
    CardLost,
    NotOffered,
    PolledCard,
    Quantity,
    ReadFailed,
)


class Call:
    """A driver call whose answer the test sets."""

    def __init__(self, name: str, answer: Mapping[str, Any] | Exception) -> None:
        self.quantity = Quantity(name, self)
        self.answer = answer
        self.count = 0

    def __call__(self) -> Mapping[str, Any]:
        self.count += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Card:
    """A card with a fast temperature and clock and a slow energy."""

    def __init__(self, limit: float | None = 87.0) -> None:
        self.temperature = Call("GetTemperature", {"temperature_celsius": 60.0})
        self.clock = Call("GetClock", {"sm_clock_mhz": 1980.0})
        self.energy = Call("GetEnergy", {"energy_joules": 5.0, COUNTERS: ThrottleCounters()})
        fast = [self.temperature.quantity, self.clock.quantity]
        self.polled = PolledCard(2, fast, [self.energy.quantity], limit)


def test_slow_values_stay_between_their_turns_and_counters_do_not() -> None:
    card = Card()
    first, _ = card.polled.poll(0.0, slow=True)
    card.energy.answer = {"energy_joules": 9.0}
    second, _ = card.polled.poll(0.1, slow=False)
    assert first is not None
    assert second is not None
    assert (first.sample.energy_joules, second.sample.energy_joules) == (5.0, 5.0)
    assert (first.sample.energy_age_s, second.sample.energy_age_s) == (None, 0.1)
    assert (first.counters, second.counters) == (ThrottleCounters(), None)


def test_headroom_is_the_way_to_the_limit() -> None:
    with_limit, _ = Card(limit=87.0).polled.poll(0.0, slow=True)
    without, _ = Card(limit=None).polled.poll(0.0, slow=True)
    assert with_limit is not None
    assert without is not None
    assert with_limit.sample.headroom_celsius == 27.0
    assert without.sample.headroom_celsius is None


def test_what_is_not_offered_is_none_without_an_event_and_never_asked_again() -> None:
    card = Card()
    card.energy.answer = NotOffered()
    for _ in range(3):
        reading, failures = card.polled.poll(0.0, slow=True)
        assert reading is not None
        assert reading.sample.energy_joules is None
        assert failures == []
    assert card.energy.count == 1


def test_a_failure_is_said_once_until_it_changes_and_takes_its_value_away() -> None:
    card = Card()
    card.polled.poll(0.0, slow=True)
    told = []
    for answer in (
        ReadFailed("no permission"),
        ReadFailed("no permission"),
        ReadFailed("unknown"),
        {"energy_joules": 7.0},
        ReadFailed("unknown"),
    ):
        card.energy.answer = answer
        reading, failures = card.polled.poll(1.0, slow=True)
        assert reading is not None
        assert reading.sample.temperature_celsius == 60.0
        told.append((reading.sample.energy_joules, [(f.call, f.error) for f in failures]))
    assert told == [
        (None, [("GetEnergy", "no permission")]),
        (None, []),
        (None, [("GetEnergy", "unknown")]),
        (7.0, []),
        (None, [("GetEnergy", "unknown")]),
    ]


def test_a_failed_slow_call_stays_failed_between_its_turns() -> None:
    card = Card()
    card.energy.answer = ReadFailed("unknown")
    assert len(card.polled.poll(0.0, slow=True)[1]) == 1
    assert card.polled.poll(0.1, slow=False)[1] == []
    assert card.polled.poll(1.0, slow=True)[1] == []


def test_a_card_of_which_no_call_works_gives_no_reading() -> None:
    card = Card()
    card.temperature.answer = card.clock.answer = ReadFailed("unknown")
    reading, failures = card.polled.poll(0.0, slow=False)
    assert reading is None
    assert [failed.call for failed in failures] == ["GetTemperature", "GetClock"]
    assert card.polled.failure == "GetTemperature: unknown"


def test_a_lost_card_is_said_once_left_alone_and_taken_back() -> None:
    card = Card()
    card.polled.poll(0.0, slow=True)
    card.temperature.answer = CardLost("GPU is lost")
    reading, (failed,) = card.polled.poll(0.1, slow=False)
    assert reading is None
    assert (failed.gpu, failed.lost, failed.error) == (2, True, "GPU is lost")

    asked = card.temperature.count
    assert card.polled.poll(0.2, slow=True) == (None, [])
    assert card.temperature.count == asked

    assert card.polled.poll(0.1 + LOST_RETRY_S, slow=False) == (None, [])
    assert card.temperature.count == asked + 1

    card.temperature.answer = {"temperature_celsius": 33.0}
    reading, failures = card.polled.poll(0.1 + 2 * LOST_RETRY_S, slow=False)
    assert failures == []
    assert reading is not None
    assert reading.sample.temperature_celsius == 33.0
