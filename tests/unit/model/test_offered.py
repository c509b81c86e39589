"""What is not offered neither counts nor becomes a zero."""

from __future__ import annotations

import pytest

from gpu_dash.model.offered import highest, lowest, total


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], (None, None, None)),
        ([None, None], (None, None, None)),
        ([None, 3.0, 1.5], (3.0, 1.5, 4.5)),
        ([0, None], (0, 0, 0)),
        ([-2.0], (-2.0, -2.0, -2.0)),
    ],
)
def test_extremes_and_sum(
    values: list[float | None], expected: tuple[float | None, float | None, float | None]
) -> None:
    assert (highest(values), lowest(values), total(values)) == expected
