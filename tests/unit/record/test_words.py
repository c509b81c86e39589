"""Numbers as words."""

from __future__ import annotations

import pytest

from gpu_dash.record.words import clock, latency, number, short, size


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (clock(7.4), "0:07"),
        (clock(59.6), "1:00"),
        (clock(3723.0), "1:02:03"),
        (clock(90_000.0), "25:00:00"),
        (number(None), "–"),
        (number(12345.67, 1), "12,345.7"),
        (latency(None), "–"),
        (latency(0.0123), "12.3 ms"),
        (latency(0.12), "120 ms"),
        (latency(1.2345), "1.23 s"),
        (short(0.05), "0.05"),
        (short(2500.0), "2500"),
        (short(25_000.0), "25k"),
        (short(2.5e6), "2.5M"),
        (size(912), "912 B"),
        (size(1_440_000), "1.4 MB"),
        (size(2.5e9), "2.5 GB"),
    ],
)
def test_numbers_read_well(made: str, words: str) -> None:
    assert made == words
