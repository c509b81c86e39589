"""Scales end at round numbers and are never flat."""

from __future__ import annotations

import pytest

from gpu_dash.ui.render.scale import Scale


@pytest.mark.parametrize(
    ("top", "high"),
    [
        (None, 1.0),
        (0.0, 1.0),
        (0.04, 0.05),
        (1.0, 1.0),
        (1.1, 2.0),
        (702.0, 1000.0),
        (2100.0, 2500.0),
    ],
)
def test_from_zero(top: float | None, high: float) -> None:
    scale = Scale.from_zero(top)

    assert scale.low == 0.0
    assert scale.high == pytest.approx(high)


@pytest.mark.parametrize(
    ("bottom", "top", "low", "high"),
    [
        (None, None, 0.0, 10.0),
        (38.0, 71.0, 30.0, 80.0),
        (40.0, 40.0, 40.0, 50.0),
        (40.0, 50.0, 40.0, 50.0),
    ],
)
def test_around(bottom: float | None, top: float | None, low: float, high: float) -> None:
    assert Scale.around(bottom, top, 10.0) == Scale(low, high)


def test_share_and_holds() -> None:
    scale = Scale(20.0, 40.0)

    assert scale.share(25.0) == 0.25
    assert scale.holds(40.0)
    assert not scale.holds(41.0)
    assert not scale.holds(20.0)
