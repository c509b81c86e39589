"""Before a launch: a profile is chosen, looked at, corrected, examined and launched by keys."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gpu_dash.analysis.memory.plan import GIB, PlanRequest, plan_memory
from gpu_dash.analysis.memory.shape import read_shape
from gpu_dash.analysis.memory.weights import Split
from gpu_dash.doctor.check import Check, fail, ok
from gpu_dash.doctor.memory import PlannedProfile
from gpu_dash.doctor.profile import Prospect
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.errors import UsageError
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.profile import Profile, ServerProfile, TargetProfile
from gpu_dash.model.server import ServerState
from gpu_dash.server.command_line import command_line
from gpu_dash.server.flags.correct import correct_profile
from gpu_dash.ui.app import DashboardApp
from gpu_dash.ui.launch_desk import Choice
from gpu_dash.ui.scripted_feed import ScriptedFeed
from tests.ui.dashboard import Screen
from tests.ui.scenes import began, server

SHAPE = read_shape(
    {"num_hidden_layers": 64, "hidden_size": 5120, "num_attention_heads": 64,
     "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 25600, "vocab_size": 151936,
     "max_position_embeddings": 40960}
)  # fmt: skip
REQUEST = PlanRequest(gpus=2, gpu_memory_bytes=140 * GIB, split=Split(tensor=2))
PLANNED = PlannedProfile(SHAPE, REQUEST, plan_memory(SHAPE, REQUEST), ramp_tokens=24_576)
SIZES = [(60, 16), (80, 24), (100, 30), (160, 48)]


def launch_profile(name: str, **flags: int | str) -> Profile:
    return Profile(
        name=name,
        description=f"the profile {name}",
        server=ServerProfile(model="acme/m", flags={**flags}),
    )


PROFILES = {
    "good": launch_profile("good", seed=1),
    "old": launch_profile("old", **{"swap-space": 8, "seed": 1}),
    "gateway": Profile(
        name="gateway", target=TargetProfile(base_url="http://127.0.0.1:1", model="far")
    ),
}


CORRECTED = {
    name: correct_profile(profile, (0, 33))
    for name, profile in PROFILES.items()
    if profile.target is None
}


class ScriptedDesk:
    """Three profiles and one that is broken; the second check waits for :attr:`go_on`."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.begun: list[tuple[str, bool, bool]] = []
        self.kept: list[str] = []
        self.refused = ""

    def choices(self) -> list[Choice]:
        return [
            *(Choice(name, profile.description) for name, profile in PROFILES.items()),
            Choice("broken", own=True, problem="no valid TOML"),
        ]

    def look_ahead(self, name: str, cards: Sequence[GpuInfo]) -> Prospect:
        if name == "broken":
            raise UsageError("profile 'broken': no valid TOML")
        profile = PROFILES[name]
        if profile.target is not None:
            return Prospect(profile=profile, starts=profile.target.base_url)
        return Prospect(
            profile=profile,
            starts=command_line(profile.server),
            release="0.33",
            corrected=CORRECTED[name],
            refused=self.refused,
            planned=PLANNED,
        )

    def examine(self, name: str) -> Iterator[Check]:
        yield ok("driver", "2 cards")
        self.go_on.wait(10)
        yield fail("power", "too much", "lower each limit")

    def begin(self, name: str, *, corrected: bool, force: bool) -> Launch | Watch:
        self.begun.append((name, corrected, force))
        profile = PROFILES[name]
        if profile.target is not None:
            return Watch(base_url=profile.target.base_url)
        return Launch(profile=profile, environment={}, folder="/")

    def keep_corrections(self, name: str) -> Path:
        self.kept.append(name)
        return Path("/srv/profiles/old.toml")


@pytest.fixture
def desk() -> Iterator[ScriptedDesk]:
    desk = ScriptedDesk()
    yield desk
    desk.go_on.set()


def app_on(feed: ScriptedFeed, desk: ScriptedDesk) -> DashboardApp:
    return DashboardApp(feed, desk=desk, frames_per_s=1e-6)


@pytest.mark.parametrize("size", SIZES)
async def test_without_a_server_the_dashboard_opens_on_the_profiles(
    desk: ScriptedDesk, size: tuple[int, int]
) -> None:
    app = app_on(ScriptedFeed(), desk)
    async with app.run_test(size=size) as pilot:
        screen = Screen(app, pilot)
        text = await screen.until(lambda text: "knows every flag" in text)
        rows = text.splitlines()

    assert "no server runs" in rows[0]
    for name in ("good", "old", "gateway", "broken"):
        assert name in text
    assert "l launch" in rows[-1]
    assert all(len(row) <= size[0] for row in rows)
    if size[1] >= 24:
        assert "fits: 32.8B parameters on 2 x 140.0 GiB, TP 2" in text


async def test_dead_flags_are_taken_as_corrected_before_the_launch(desk: ScriptedDesk) -> None:
    feed = ScriptedFeed()
    app = app_on(feed, desk)
    async with app.run_test(size=(100, 30)) as pilot:
        screen = Screen(app, pilot)
        await screen.press("down")
        text = await screen.until(lambda text: "--swap-space is gone" in text)
        assert "vllm serve acme/m --seed 1" in text
        await screen.press("l")
        assert "a takes the corrected ones" in await screen.text()
        await screen.press("a", "l")
        await screen.until(lambda text: "before a launch" not in text)

    assert desk.begun == [("old", True, False)]
    assert [type(command) for command in feed.sent] == [Launch]


async def test_corrections_are_kept_in_the_users_own_file(desk: ScriptedDesk) -> None:
    app = app_on(ScriptedFeed(), desk)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Screen(app, pilot)
        await screen.press("w")
        assert "still looking" in await screen.text() or "nothing to correct" in await screen.text()
        await screen.press("down")
        await screen.until(lambda text: "--swap-space is gone" in text)
        await screen.press("w")
        await screen.until(lambda text: "written: /srv/profiles/old.toml" in text)

    assert desk.kept == ["old"]


async def test_the_doctors_checks_come_one_by_one(desk: ScriptedDesk) -> None:
    app = app_on(ScriptedFeed(), desk)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Screen(app, pilot)
        await screen.until(lambda text: "knows every flag" in text)
        await screen.press("d")
        text = await screen.until(lambda text: "✓ driver" in text and "checking" in text)
        assert "power" not in text
        desk.go_on.set()
        text = await screen.until(lambda text: "done:" in text)

    assert "✗ power" in text
    assert "→ lower each limit" in text
    assert "1 ok, 0 warn, 1 fail" in text


async def test_an_endpoint_is_watched_and_not_launched(desk: ScriptedDesk) -> None:
    feed = ScriptedFeed()
    app = app_on(feed, desk)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Screen(app, pilot)
        await screen.press("down", "down")
        text = await screen.until(lambda text: "WATCHES" in text)
        assert "l watch it" in text
        await screen.press("l")
        await screen.until(lambda text: "before a launch" not in text)

    assert [type(command) for command in feed.sent] == [Watch]


async def test_what_the_preflight_refuses_is_launched_only_by_force(desk: ScriptedDesk) -> None:
    desk.refused = "`server.port`: 8000 is taken"
    feed = ScriptedFeed()
    app = app_on(feed, desk)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Screen(app, pilot)
        await screen.until(lambda text: "8000 is taken" in text)
        await screen.press("l")
        assert "F launches all the same" in await screen.text()
        assert feed.sent == []
        await screen.press("F")
        await screen.until(lambda text: "before a launch" not in text)

    assert desk.begun == [("good", False, True)]


async def test_a_broken_profile_says_what_is_wrong_and_starts_nothing(desk: ScriptedDesk) -> None:
    app = app_on(ScriptedFeed(), desk)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Screen(app, pilot)
        await screen.press("end")
        await screen.until(lambda text: "profile 'broken': no valid TOML" in text)
        await screen.press("l")
        assert "before a launch" in await screen.text()

    assert desk.begun == []


async def test_with_a_server_the_profiles_open_by_their_key_and_close_again(
    desk: ScriptedDesk,
) -> None:
    feed = ScriptedFeed(began(), server(ServerState.READY, 2.0))
    app = app_on(feed, desk)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Screen(app, pilot)
        assert "before a launch" not in await screen.text()
        await screen.press("p")
        assert "a server is ready" in await screen.text()
        await screen.press("l", "escape")
        assert "READY" in await screen.text()

    assert desk.begun == []
