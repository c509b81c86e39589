"""What the cards draw without load."""

from __future__ import annotations

import pytest

from gpu_dash.analysis.idle_power import WINDOW_S, IdlePower
from gpu_dash.model.events import GpuSamples
from gpu_dash.model.gpu import GpuSample


def draw(idle: IdlePower, first: float, last: float, *watts: float | None) -> None:
    """Sweeps ten times a second."""
    for index in range(round((last - first) * 10) + 1):
        at = first + index / 10
        samples = tuple(GpuSample(gpu=gpu, power_watts=each) for gpu, each in enumerate(watts))
        idle.add(GpuSamples(at=at, samples=samples))


def test_the_quietest_time_without_load_counts_whatever_came_before_and_after() -> None:
    idle = IdlePower()
    draw(idle, 0, 10, 300.0)  # loading weights
    draw(idle, 10, 20, 120.0)
    draw(idle, 20, 30, 150.0)
    assert idle.watts() == pytest.approx(120.0)


def test_nothing_is_said_of_cards_that_were_never_seen_without_load() -> None:
    idle = IdlePower()
    idle.set_loaded(True)
    draw(idle, 0, 20, 90.0)
    assert idle.watts() is None
    idle.set_loaded(False)
    draw(idle, 20, 20 + WINDOW_S / 2, 90.0)
    assert idle.watts() is None


def test_two_short_pauses_are_not_one_long_one() -> None:
    idle = IdlePower()
    draw(idle, 0, 2, 90.0)
    idle.set_loaded(True)
    draw(idle, 2, 4, 700.0)
    idle.set_loaded(False)
    draw(idle, 4, 6, 90.0)
    assert idle.watts() is None


def test_only_the_servers_cards_count_and_all_of_them() -> None:
    idle = IdlePower()
    draw(idle, 0, 5, 100.0, 80.0, None)
    assert idle.watts((0, 1)) == pytest.approx(180.0)
    assert idle.watts((1,)) == pytest.approx(80.0)
    assert idle.watts((1, 2)) is None
    assert idle.watts((7,)) is None
