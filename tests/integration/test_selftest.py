"""The load generator against the server in the package that knows what it did."""

from __future__ import annotations

import json

import click.testing
import pytest

from gpu_dash.cli import selftest as selftest_command
from gpu_dash.load.selftest import measure


async def test_the_figures_are_the_servers() -> None:
    row = await measure(4, rounds=2, workers=2)
    assert (row.requests_ok, row.requests_failed) == (8, 0)
    # An event loop's timer may fire up to a millisecond early.
    assert 0.098 <= row.ttft_p50_s < 0.15
    assert row.gap_p50_s == pytest.approx(0.01, abs=0.005)
    assert 0 <= row.ttft_error_p50_s < 0.05
    assert abs(row.gap_error_p50_s) < 0.005
    assert row.cpu_s_per_1000_tokens > 0


def test_the_command_prints_a_row_for_each_number_of_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selftest_command, "STREAMS", (1, 2))
    ran = click.testing.CliRunner().invoke(
        selftest_command.command, ["--json"], standalone_mode=False
    )
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [row["streams"] for row in rows] == [1, 2]
    assert ran.return_value == 0
