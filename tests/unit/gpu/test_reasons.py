"""The driver's bits as names."""

from __future__ import annotations

import pytest

from gpu_dash.gpu.reasons import throttle_reasons


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0x0, ()),
        (0x1, ()),  # idle
        (0x2, ()),  # application clocks
        (0x10, ()),  # sync boost
        (0x100, ()),  # display clock
        (0x4, ("sw_power_cap",)),
        (0x8, ("hw_slowdown",)),
        (0x60, ("sw_thermal", "hw_thermal")),
        (0x80, ("hw_power_brake",)),
        (0x1 | 0x4 | 0x40, ("sw_power_cap", "hw_thermal")),
        (0x200, ("0x200",)),
        (0x8000_0000_0000_0004, ("sw_power_cap", "0x8000000000000000")),
    ],
)
def test_names(bits: int, names: tuple[str, ...]) -> None:
    assert throttle_reasons(bits) == names
