"""The same screen on a recording: play, pause, seek; no load keys."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_dash.model.events import Event
from gpu_dash.ui.replay_feed import ReplayFeed
from tests.fakes.clock import ManualClock
from tests.ui.dashboard import dashboard
from tests.ui.scenes import ramp_scene


class Recording:
    """The ramp as a recording."""

    duration_s = 110.0

    def __init__(self) -> None:
        self.events = list(ramp_scene(4, 110.0))

    def events_until(self, position_s: float) -> Sequence[Event]:
        return [event for event in self.events if event.at <= position_s]

    def events_between(self, start_s: float, end_s: float) -> Sequence[Event]:
        return [event for event in self.events if start_s < event.at <= end_s]


async def test_it_plays(clock: ManualClock) -> None:
    async with dashboard(ReplayFeed(Recording(), clock=clock.monotonic)) as screen:
        assert "▶ PLAYING 0:00 / 1:50 ×1" in await screen.text()
        clock.advance(20.0)
        text = await screen.text()

    assert "▶ PLAYING 0:20 / 1:50" in text
    assert "1 concurrent" in text
    assert "replay" in text


async def test_pause_seek_and_speed(clock: ManualClock) -> None:
    async with dashboard(ReplayFeed(Recording(), clock=clock.monotonic)) as screen:
        await screen.press("space")
        clock.advance(50.0)
        assert "‖ PAUSED  0:00" in await screen.text()

        await screen.press("right", "right", "shift+right")
        text = await screen.text()
        assert "1:20 / 1:50" in text
        assert "16 concurrent" in text

        await screen.press("left")
        assert "1:10 / 1:50" in await screen.text()
        await screen.press("shift+left")
        text = await screen.text()
        assert "0:10 / 1:50" in text
        assert "1 concurrent" in text

        await screen.press("end")
        assert "1:50 / 1:50" in await screen.text()
        await screen.press("home")
        assert "0:00 / 1:50" in await screen.text()
        await screen.press("greater_than_sign", "greater_than_sign", "less_than_sign")
        assert "×2" in await screen.text()


async def test_a_throttle_is_there_at_its_time_and_gone_before_it(clock: ManualClock) -> None:
    feed = ReplayFeed(Recording(), playing=False, clock=clock.monotonic)
    async with dashboard(feed, (100, 30)) as screen:
        feed.seek(90.0)
        assert "THERMAL" in await screen.text()
        feed.seek(60.0)
        assert "THERMAL" not in await screen.text()


async def test_load_keys_are_off(clock: ManualClock) -> None:
    async with dashboard(ReplayFeed(Recording(), clock=clock.monotonic)) as screen:
        assert "→" not in (await screen.rows())[-1].replace("←→", "")
        await screen.press("plus")
        assert "this is a replay" in await screen.text()


async def test_the_arrows_can_be_given_to_the_log(clock: ManualClock) -> None:
    feed = ReplayFeed(Recording(), playing=False, clock=clock.monotonic)
    feed.seek(60.0)
    async with dashboard(feed) as screen:
        await screen.press("tab", "right")
        text = await screen.text()

    assert "1:00 / 1:50" in text
    assert "APIServer pid" not in text
