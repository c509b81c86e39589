"""The table of a real session on two H200s."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpu_dash.cli.sessions.card_steps import card_step_cells
from gpu_dash.record.card_steps import card_steps_of
from gpu_dash.record.reader import SessionReader

SESSION = Path(__file__).parents[2] / "data/h200-tp2"


def test_a_real_ramp_shows_the_power_cap_cost_growing_with_the_load() -> None:
    cards = card_steps_of(SessionReader(SESSION))
    assert [card.concurrency for card in cards if card.gpu == 0] == [
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
    ]
    deficits = [card.clock_deficit or 0.0 for card in cards if card.gpu == 1]
    assert deficits[0] < 0.01
    assert 0.19 < deficits[-1] < 0.23
    assert all(card.throttle_thermal_s == 0 for card in cards)
    assert card_step_cells(cards[-1])[:6] == ("9", "256", "1", "0.0 s", "20.0 s", "21.0 %")


def test_a_card_in_an_open_loop_is_told_by_its_rate() -> None:
    card = msgspec.structs.replace(
        card_steps_of(SessionReader(SESSION))[0], concurrency=None, request_rate=2.5
    )
    assert card_step_cells(card)[:3] == ("1", "2.5/s", "0")
