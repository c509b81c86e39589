"""The same facts at every size, with one to sixteen cards."""

from __future__ import annotations

import re

import pytest

from gpu_dash.ui.scripted_feed import ScriptedFeed
from tests.ui.dashboard import dashboard
from tests.ui.scenes import ramp_scene, thermal_and_cap_scene

SIZES = [(60, 16), (80, 24), (100, 30), (160, 48), (200, 50)]


@pytest.mark.parametrize(
    ("size", "cards"),
    [
        ((60, 16), 16),
        ((80, 24), 1),
        ((80, 24), 8),
        ((80, 24), 16),
        ((100, 30), 4),
        ((160, 48), 2),
        ((160, 48), 16),
        ((200, 50), 8),
    ],
)
async def test_what_is_always_there(size: tuple[int, int], cards: int) -> None:
    async with dashboard(ScriptedFeed(*ramp_scene(cards, 88.0)), size) as screen:
        rows = await screen.rows()

    text = "\n".join(rows)
    assert len(rows) == size[1]
    assert "● READY 1m22s" in rows[0]
    assert "RUNNING" in rows[1]
    assert "16 concurrent" in rows[1]
    assert "tok/s" in text
    for gpu in range(cards):
        assert re.search(rf"(^|\s){gpu}[ ▲✗]+\d+°", text, re.MULTILINE), f"card {gpu}"
    assert f"{cards - 1}▲" in text
    assert "THERMAL" in text
    assert "throttle_begin" in rows[-2] + rows[-3]
    assert rows[-1].startswith("+ ] 16→32")
    assert "q leave" in rows[-1]


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (160, 48)])
async def test_charts_and_log_are_there_from_eighty_columns_on(size: tuple[int, int]) -> None:
    async with dashboard(ScriptedFeed(*ramp_scene(8, 88.0)), size) as screen:
        text = await screen.text()

    for title in ("tok/s", "TTFT ms", "temp °C"):
        assert title in text
    assert "▲7▬" in text
    assert "┊16" in text
    assert "POST /v1/completions" in text


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_thermal_and_power_cap_are_told_apart(size: tuple[int, int]) -> None:
    async with dashboard(ScriptedFeed(*thermal_and_cap_scene()), size) as screen:
        thermal, cap = await screen.row("3▲"), await screen.row(" 67°")

    assert "THERMAL" in thermal
    assert "cap" in cap
    assert "▲" not in cap


@pytest.mark.parametrize("cards", [2, 16])
async def test_through_a_tiny_terminal_and_back(cards: int) -> None:
    async with dashboard(ScriptedFeed(*ramp_scene(cards, 88.0)), (80, 24)) as screen:
        before = await screen.rows()

        await screen.resize(20, 5)
        tiny = await screen.rows()
        await screen.resize(160, 48)
        large = await screen.rows()
        await screen.resize(80, 24)
        after = await screen.rows()

    assert [row.rstrip() for row in tiny] == ["60x16 needed", "", "", "", ""]
    assert len(large) == 48
    assert "acme/model-32b" in large[0]
    assert after == before


async def test_a_small_terminal_says_what_it_needs_and_can_be_left() -> None:
    async with dashboard(ScriptedFeed(), (59, 30)) as screen:
        assert (await screen.rows())[0].startswith("gpu-dash needs 60x16 (q leaves)")
        await screen.press("q")

    assert not screen.app.is_running


async def test_steps_have_a_table_where_there_is_room() -> None:
    async with dashboard(ScriptedFeed(*ramp_scene(8, 88.0)), (160, 48)) as screen:
        text = await screen.text()

    assert "thr s" in text
    assert re.search(r"\s8\s+556\s+72 ms", text)
