"""Numbers as a person reads them."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_dash.ui.render import format as fmt


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (fmt.duration, 0.0, "0s"),
        (fmt.duration, 59.9, "59s"),
        (fmt.duration, 60.0, "1m00s"),
        (fmt.duration, 3599.0, "59m59s"),
        (fmt.duration, 3661.0, "1h01m"),
        (fmt.duration, 90000.0, "1d01h"),
        (fmt.duration, -5.0, "0s"),
        (fmt.ago, 12.3, "12s ago"),
        (fmt.clock, 7.0, "0:07"),
        (fmt.clock, 750.0, "12:30"),
        (fmt.clock, 3723.0, "1:02:03"),
        (fmt.clock, -90.0, "-1:30"),
        (fmt.latency, None, "–"),
        (fmt.latency, 0.0004, "0.4 ms"),
        (fmt.latency, 0.0421, "42 ms"),
        (fmt.latency, 0.9999, "1.00 s"),
        (fmt.latency, 1.236, "1.24 s"),
        (fmt.latency, 75.2, "75 s"),
        (fmt.count, None, "–"),
        (fmt.count, 0, "0"),
        (fmt.count, 0.4, "0.4"),
        (fmt.count, 1830.4, "1,830"),
        (fmt.short, 0.0, "0"),
        (fmt.short, 0.05, "0.05"),
        (fmt.short, 250.0, "250"),
        (fmt.short, 2500.0, "2.5k"),
        (fmt.short, 2_000_000.0, "2M"),
        (fmt.whole, None, "–"),
        (fmt.whole, 92.6, "93"),
        (fmt.percent, None, "–"),
        (fmt.percent, 0.415, "42%"),
        (fmt.gib, 3 * fmt.GIB, 3.0),
        (fmt.gib, None, None),
    ],
)
def test_format(function: Any, value: Any, text: Any) -> None:
    assert function(value) == text


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (612.4, 700.0, "612/700"),
        (None, 700.0, "–/700"),
        (612.4, None, "612"),
        (None, None, "–"),
    ],
)
def test_pair(value: float | None, limit: float | None, text: str) -> None:
    assert fmt.pair(value, limit) == text
