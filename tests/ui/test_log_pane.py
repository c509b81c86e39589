"""The log stays live, stays where one reads, and leads to the cause."""

from __future__ import annotations

import time

import pytest

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import ThrottleKind
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.ui.scripted_feed import ScriptedFeed
from gpu_dash.ui.widgets.log_pane import LogPane
from tests.ui.dashboard import Screen, dashboard
from tests.ui.scenes import began

CAUSE = "Watchdog caught collective operation timeout on rank 1"
FOLLOW_ON = "EngineDeadError: EngineCore encountered an issue"


def lines(first: int, last: int) -> ev.LogLines:
    return ev.LogLines(
        at=float(last),
        lines=tuple(LogLine(number, f"line number {number}") for number in range(first, last + 1)),
    )


def crash(at: float, number: int) -> list[ev.Event]:
    return [
        ev.LogLines(at=at, lines=(
            LogLine(number, CAUSE, "nccl_timeout", Severity.ERROR, True),
            LogLine(number + 1, FOLLOW_ON, "engine_dead", Severity.CRITICAL),
        )),
        ev.Finding(
            at=at, kind="nccl_timeout", severity=Severity.ERROR, source="log", line=number,
            message=CAUSE, first_check="throttle reasons of every card",
        ),
    ]  # fmt: skip


async def log_rows(screen: Screen) -> list[str]:
    """The rows of the pane below its title."""
    rows = await screen.rows()
    pane = screen.app.screen.query_one(LogPane).region
    return [row.rstrip() for row in rows[pane.y + 1 : pane.bottom]]


async def title(screen: Screen) -> str:
    return await screen.row("─ log")


async def test_it_follows_until_one_moves_and_again_at_the_end() -> None:
    feed = ScriptedFeed(began(), lines(1, 100))
    async with dashboard(feed) as screen:
        assert (await log_rows(screen))[-1] == "   line number 100"

        await screen.press("up")
        feed.publish(lines(101, 150))
        stays = await log_rows(screen)
        assert stays[-1] == "   line number 100"
        assert "› " in "".join(stays)
        assert "50 below" in await title(screen)

        await screen.press("F")
        feed.publish(lines(151, 151))
        assert (await log_rows(screen))[-1] == "   line number 151"
        assert "following" in await title(screen)


async def test_down_from_the_last_line_follows_again() -> None:
    feed = ScriptedFeed(began(), lines(1, 100))
    async with dashboard(feed) as screen:
        await screen.press("up", "down")
        assert "following" in await title(screen)


async def test_to_the_oldest_and_the_newest() -> None:
    async with dashboard(ScriptedFeed(began(), lines(1, 100))) as screen:
        await screen.press("g")
        assert (await log_rows(screen))[0] == "›  line number 1"
        await screen.press("G")
        assert (await log_rows(screen))[-1] == "   line number 100"


async def test_e_leads_to_the_cause_and_enter_opens_it() -> None:
    feed = ScriptedFeed(began(), lines(1, 360), *crash(361.0, 361), lines(363, 1000))
    async with dashboard(feed) as screen:
        assert CAUSE not in "\n".join(await log_rows(screen))

        await screen.press("e")
        row = await screen.row("›")
        assert "✗ nccl_timeout" in row
        assert CAUSE in row

        await screen.press("enter")
        text = await screen.text()
        assert "line 361 nccl_timeout" in text
        assert "throttle reasons of every card" in text
        await screen.press("escape")
        assert "line 361" not in await screen.text()


async def test_a_throttle_stands_between_the_lines() -> None:
    throttle = ev.ThrottleBegan(at=50.0, gpu=3, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",))
    feed = ScriptedFeed(began(), lines(1, 50), throttle, lines(51, 52))
    async with dashboard(feed) as screen:
        rows = await log_rows(screen)

    assert rows[-3:] == [
        " ▲ throttle_begin gpu:3 THERMAL  hw_thermal",
        "   line number 51",
        "   line number 52",
    ]


async def test_filters_in_turn() -> None:
    feed = ScriptedFeed(began(), lines(1, 10), *crash(11.0, 11))
    async with dashboard(feed) as screen:
        await screen.press("f")
        assert "only findings" in await title(screen)
        assert len([row for row in await log_rows(screen) if row]) == 2
        await screen.press("f", "f")
        assert "only" not in await title(screen)


async def test_search_marks_goes_on_and_filters() -> None:
    feed = ScriptedFeed(began(), lines(1, 300))
    async with dashboard(feed) as screen:
        await screen.press("slash", *"number 2", "enter")
        assert (await screen.row("› ")).strip() == "›  line number 299"
        await screen.press("n")
        assert (await screen.row("› ")).strip() == "›  line number 298"
        await screen.press("N")
        assert (await screen.row("› ")).strip() == "›  line number 299"
        await screen.press("f", "f", "f")
        assert "only text “number 2”" in await title(screen)
        await screen.press("escape")
        assert "only" not in await title(screen)


async def test_without_a_title_the_filter_is_said_for_a_moment() -> None:
    feed = ScriptedFeed(began(), lines(1, 10), *crash(11.0, 11))
    async with dashboard(feed, (80, 20)) as screen:
        assert not await title(screen)
        await screen.press("f")
        assert "log: only findings (2)" in await screen.text()
        await screen.press("f", "f")
        assert "log: all lines (12)" in await screen.text()


async def test_a_key_that_finds_no_other_match_says_so() -> None:
    async with dashboard(ScriptedFeed(began(), lines(1, 10))) as screen:
        await screen.press("n")
        assert "nothing is searched yet" in await screen.text()
        await screen.press("slash", *"number 7", "enter", "n")
        assert "no match of “number 7” above this line" in await screen.text()
        await screen.press("N")
        assert "no match of “number 7” below this line" in await screen.text()
        assert (await screen.row("› ")).strip() == "›  line number 7"


async def test_a_search_without_a_match_says_so() -> None:
    async with dashboard(ScriptedFeed(began(), lines(1, 10))) as screen:
        await screen.press("slash", *"absent", "enter")
        assert "nothing with “absent”" in await screen.text()


async def test_escape_leaves_the_search_line() -> None:
    async with dashboard(ScriptedFeed(began(), lines(1, 10))) as screen:
        await screen.press("slash", "x", "escape")
        assert "· no finding" in (await screen.rows())[-2]


async def test_long_lines_scroll_sideways() -> None:
    long = LogLine(1, "".join(f"{column:<10}" for column in range(0, 300, 10)))
    async with dashboard(ScriptedFeed(began(), ev.LogLines(at=1.0, lines=(long,)))) as screen:
        assert (await log_rows(screen))[0].startswith("   0         10")
        await screen.press("right", "right")
        assert (await log_rows(screen))[0].startswith("           40")
        assert "from column 32" in await title(screen)
        await screen.press("home")
        assert (await log_rows(screen))[0].startswith("   0         10")


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_ten_thousand_lines_a_second_stay_live(size: tuple[int, int]) -> None:
    """Five seconds of them, two frames a second: the newest is on the screen in each frame."""
    feed = ScriptedFeed(began())
    spent = 0.0
    async with dashboard(feed, size) as screen:
        for frame in range(10):
            first = frame * 5000 + 1
            event = lines(first, first + 4999)
            start = time.process_time()
            feed.publish(event)
            rows = await log_rows(screen)
            spent += time.process_time() - start
            assert rows[-1] == f"   line number {first + 4999}"

        assert "lines following" in await title(screen)
        await screen.press("g")
        assert "line number" in await screen.row("› ")
    assert spent / 10 < 0.25, "a frame takes half of its time"


async def test_reading_goes_on_while_the_log_pours_in() -> None:
    feed = ScriptedFeed(began(), lines(1, 100))
    async with dashboard(feed) as screen:
        await screen.press("up")
        before = await log_rows(screen)
        for frame in range(4):
            first = 101 + frame * 1000
            feed.publish(lines(first, first + 999))
            assert await log_rows(screen) == before
