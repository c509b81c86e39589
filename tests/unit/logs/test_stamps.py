"""Stamps of logs as moments of the world."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from gpu_dash.logs.stamps import utc_seconds

NEAR = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()
BERLIN_WINTER = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("stamp", "utc"),
    [
        ("11-30 18:51:57", "2026-11-30T17:51:57"),
        ("01-02 03:04:05", "2027-01-02T02:04:05"),
        ("1130 10:21:52.104233871", "2026-11-30T09:21:52"),
        ("E1130 10:21:52", "2026-11-30T09:21:52"),
        ("109 08:01:10.1", "2027-01-09T07:01:10"),
        ("20241209 08:01:10.1", "2024-12-09T07:01:10"),
        ("2025-11-04 18:02:56", "2025-11-04T17:02:56"),
        ("2026-05-18T19:02:39+00:00", "2026-05-18T19:02:39"),
        ("2026-11-30 10:21:52,123", "2026-11-30T09:21:52"),
        ("Sep 18 19:02:39", "2026-09-18T18:02:39"),
    ],
)
def test_a_stamp_is_a_moment_once_zone_and_date_are_known(stamp: str, utc: str) -> None:
    moment = utc_seconds(stamp, BERLIN_WINTER, NEAR)

    assert moment is not None
    assert datetime.fromtimestamp(int(moment), UTC).isoformat() == f"{utc}+00:00"


@pytest.mark.parametrize("stamp", ["", "812.118922", "13-45 10:00:00", "Foo 18 19:02:39"])
def test_what_counts_from_something_else_is_no_moment(stamp: str) -> None:
    assert utc_seconds(stamp, UTC, NEAR) is None


def test_without_a_date_nearby_only_a_stamp_with_a_year_is_one() -> None:
    assert utc_seconds("11-30 18:51:57", UTC, None) is None
    assert utc_seconds("2026-11-30 18:51:57", UTC, None) is not None
