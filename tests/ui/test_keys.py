"""Keys become commands; the screen changes when the event came back."""

from __future__ import annotations

import pytest
from textual import events

from gpu_dash.model import commands as cmd
from gpu_dash.model.events import Finding, LoadChanged
from gpu_dash.model.load import LoadMode, LoadPlan, LoadState
from gpu_dash.model.log import Severity
from gpu_dash.model.server import ServerState
from gpu_dash.ui.feed import Access, Link, LinkState
from gpu_dash.ui.render.layout import Zoom
from gpu_dash.ui.run import LeftBy
from gpu_dash.ui.scripted_feed import ScriptedFeed
from gpu_dash.ui.view import View
from tests.ui.dashboard import dashboard
from tests.ui.scenes import began, ramp_scene, server, thermal_and_cap_scene

PLAN = LoadPlan(ramp=(1, 4, 8, 16, 32))


def loaded(concurrency: int, state: LoadState = LoadState.RUNNING, at: float = 3.0) -> LoadChanged:
    return LoadChanged(at=at, state=state, mode=LoadMode.MANUAL, concurrency=concurrency, plan=PLAN)


def feed_at(concurrency: int, access: Access | None = None) -> ScriptedFeed:
    return ScriptedFeed(began(), server(ServerState.READY, 2.0), loaded(concurrency), access=access)


@pytest.mark.parametrize(
    ("key", "command"),
    [
        ("plus", cmd.SetConcurrency(concurrency=16)),
        ("equals_sign", cmd.SetConcurrency(concurrency=16)),
        ("minus", cmd.SetConcurrency(concurrency=4)),
        ("right_square_bracket", cmd.SetConcurrency(concurrency=16)),
        ("left_square_bracket", cmd.SetConcurrency(concurrency=4)),
        ("7", cmd.SetConcurrency(concurrency=64)),
        ("0", cmd.StopLoad()),
        ("r", cmd.PauseLoad()),
    ],
)
async def test_a_load_key_sends_its_command(key: str, command: cmd.Command) -> None:
    feed = feed_at(8)
    async with dashboard(feed) as screen:
        await screen.press(key)

    assert feed.sent == [command]


async def test_the_screen_changes_when_the_event_came_back_and_not_before() -> None:
    feed = feed_at(8)
    async with dashboard(feed) as screen:
        await screen.press("plus")
        assert "8 concurrent" in await screen.text()

        feed.publish(loaded(16, at=4.0))
        text = await screen.text()

    assert "16 concurrent" in text
    assert "+ ] 16→32" in text


async def test_a_refused_command_says_why() -> None:
    feed = feed_at(8)
    feed.refusal = "another viewer has just taken the controls"
    async with dashboard(feed) as screen:
        await screen.press("plus")
        text = await screen.until(lambda text: feed.refusal in text)

    assert "8 concurrent" in text


async def test_a_read_only_viewer_is_told_and_can_take_control() -> None:
    feed = feed_at(8, Access(yours=False, viewers=2))
    async with dashboard(feed) as screen:
        await screen.press("plus")
        assert "another terminal has the controls, c takes them" in await screen.text()
        assert feed.sent == []

        await screen.press("c")
        assert "another terminal" not in await screen.text()

    assert feed.sent == [cmd.TakeControl()]


@pytest.mark.parametrize(("answer", "sent"), [("y", [cmd.StopServer()]), ("n", []), ("escape", [])])
async def test_stopping_the_server_asks(answer: str, sent: list[cmd.Command]) -> None:
    feed = feed_at(8)
    async with dashboard(feed) as screen:
        await screen.press("s")
        assert "Stop the load and the server?" in await screen.text()
        assert feed.sent == []

        await screen.press(answer)
        assert "Stop the load" not in await screen.text()

    assert feed.sent == sent


async def test_l_launches_when_nothing_runs() -> None:
    launch = cmd.Watch(base_url="http://127.0.0.1:1")
    feed = ScriptedFeed()
    async with dashboard(feed, launch=launch) as screen:
        assert "l launch" in (await screen.rows())[-1]
        await screen.press("l")

    assert feed.sent == [launch]


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_leaving_is_immediate_and_says_what_goes_on(key: str) -> None:
    async with dashboard(feed_at(8)) as screen:
        await screen.press(key)

    left = screen.app.left()
    assert left.by is LeftBy.QUIT
    assert left.server is not None
    assert left.server.state is ServerState.READY
    assert left.load is LoadState.RUNNING
    assert left.concurrency == 8
    assert left.session_folder == "sessions/demo"


async def test_ctrl_c_says_how_to_leave_and_leaves_when_repeated() -> None:
    async with dashboard(feed_at(8)) as screen:
        await screen.press("ctrl+c")
        assert "q leaves, Ctrl+C once more too" in await screen.text()
        assert screen.app.is_running

        await screen.press("ctrl+c")

    assert screen.app.left().by is LeftBy.QUIT


async def test_ctrl_c_does_not_promise_what_ends_with_the_screen() -> None:
    async with dashboard(feed_at(8), ends_with_screen=True) as screen:
        await screen.press("ctrl+c")
        assert "that ends server and load" in await screen.text()
        assert "go on" not in await screen.text()


async def test_a_burst_of_alarms_is_one_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = ScriptedFeed(*thermal_and_cap_scene())
    async with dashboard(feed) as screen:
        frames = 0
        paint = screen.app._dashboard.show

        def counted(view: View, zoom: Zoom) -> None:
            nonlocal frames
            frames += 1
            paint(view, zoom)

        monkeypatch.setattr(screen.app._dashboard, "show", counted)
        for number in range(500):
            feed.publish(
                Finding(
                    at=feed.moment, kind=f"kind_{number}", severity=Severity.ERROR, source="log"
                )
            )
        while not frames:
            await screen.pilot.pause(0.01)
        await screen.pilot.pause(0.1)

    assert frames == 1


async def test_help_lists_the_keys_and_closes() -> None:
    async with dashboard(feed_at(8), (100, 40)) as screen:
        await screen.press("question_mark")
        text = await screen.text()
        assert "double, halve" in text
        assert "time window: 2, 5, 15, 60 minutes" in text

        await screen.press("q")
        assert "double, halve" not in await screen.text()
        assert screen.app.is_running


async def test_the_dashboard_goes_on_behind_help() -> None:
    feed = feed_at(8)
    async with dashboard(feed, (100, 30)) as screen:
        await screen.press("question_mark")
        feed.publish(server(ServerState.FAILED, 9.0, exit_code=1, detail="out of memory"))

        assert "FAILED" in (await screen.rows())[0]


async def test_ctrl_q_leaves_from_anywhere() -> None:
    async with dashboard(feed_at(8)) as screen:
        await screen.press("question_mark", "ctrl+q")

    assert screen.app.left().by is LeftBy.QUIT


async def test_load_keys_do_nothing_behind_a_question() -> None:
    feed = feed_at(8)
    async with dashboard(feed) as screen:
        await screen.press("s", "plus", "5")

    assert feed.sent == []


async def test_window_and_zoom() -> None:
    async with dashboard(ScriptedFeed(*ramp_scene(2, 88.0)), (100, 30)) as screen:
        assert "temp °C" in await screen.text()
        await screen.press("t")
        assert "time window 5 min" in await screen.text()
        await screen.press("z")
        text = await screen.text()

    assert "temp °C" not in text
    assert text.count("POST /v1/completions") > 15
    assert "THERMAL" in text


async def test_a_lost_agent_greys_the_screen_and_is_explained() -> None:
    feed = ScriptedFeed(*thermal_and_cap_scene())
    async with dashboard(feed) as screen:
        feed.link = Link(LinkState.LOST, since=feed.moment, detail="the agent went away")
        feed.moment += 12
        rows = await screen.rows()

        await screen.press("plus")
        refused = await screen.text()

    assert "AGENT GONE" in rows[0]
    assert "12s ago" in rows[0]
    assert "the agent went away" in rows[-2]
    assert feed.sent == []
    assert "no agent to ask" in refused


async def test_readings_that_stay_away_show_their_age() -> None:
    feed = ScriptedFeed(*thermal_and_cap_scene())
    async with dashboard(feed) as screen:
        assert "ago" not in await screen.row(" 62°")
        feed.moment += 12

        assert "12s ago" in await screen.row(" 62°")


async def test_what_is_typed_in_one_burst_behind_the_search_key_is_searched() -> None:
    """Over a slow line keys arrive together; none of them may reach the load keys."""
    feed = ScriptedFeed(*ramp_scene(2, 88.0))
    async with dashboard(feed) as screen:
        for key, character in (("slash", "/"), ("4", "4"), ("0", "0"), ("plus", "+")):
            screen.app.post_message(events.Key(key, character))
        text = await screen.until(lambda text: "/40+" in text)

    assert feed.sent == []
    assert "no finding" not in text
