"""What a key says it does is what it does."""

from __future__ import annotations

import pytest

from gpu_dash.model import commands as cmd
from gpu_dash.model.events import Event, LoadChanged, LoadTick
from gpu_dash.model.load import LoadPlan, LoadState
from gpu_dash.model.server import HandleKind, ServerState
from gpu_dash.ui.feed import Access, LinkState, PlayState
from gpu_dash.ui.load_keys import (
    control_offer,
    launch_offer,
    load_offer,
    stop_server_offer,
)
from gpu_dash.ui.render.key_bar import key_bar
from gpu_dash.ui.view import View
from tests.ui.scenes import server
from tests.unit.ui.views import view_of

PLAN = LoadPlan(ramp=(1, 4, 8, 16, 32))
READY = server(ServerState.READY, 1.0)


def loaded(concurrency: int, state: LoadState = LoadState.RUNNING) -> View:
    event = LoadChanged(at=2.0, state=state, concurrency=concurrency, plan=PLAN)
    return view_of(READY, event)


@pytest.mark.parametrize(
    ("now", "key", "then"),
    [
        (8, "+", 16),
        (8, "-", 4),
        (10, "+", 16),
        (10, "-", 8),
        (32, "+", 64),
        (100, "+", 200),
        (100, "-", 32),
        (4, "-", 1),
        (8, "]", 16),
        (8, "[", 4),
        (5, "[", 2),
        (8, "1", 1),
        (8, "5", 16),
        (8, "9", 256),
    ],
)
def test_load_keys(now: int, key: str, then: int) -> None:
    offer = load_offer(key, loaded(now))

    assert offer.command == cmd.SetConcurrency(concurrency=then)
    assert offer.label == f"{now}→{then}"


def open_loop(rate: float | None, plan: LoadPlan = PLAN, *more: Event) -> View:
    state = LoadState.IDLE if rate is None else LoadState.RUNNING
    event = LoadChanged(at=2.0, state=state, request_rate=rate, plan=plan)
    return view_of(READY, event, *more, now=10.0)


@pytest.mark.parametrize(
    ("now", "key", "then"),
    [
        (4.0, "+", 8.0),
        (4.0, "-", 2.0),
        (3.0, "+", 4.0),
        (256.0, "+", 512.0),
        (4.0, "]", 8.0),
        (5.0, "[", 2.5),
        (0.5, "-", 0.25),
        (0.15, "[", 0.1),
        (4.0, "1", 1.0),
        (4.0, "7", 64.0),
        (0.33333, "]", 0.667),
    ],
)
def test_the_same_keys_change_the_rate_of_an_open_loop(now: float, key: str, then: float) -> None:
    offer = load_offer(key, open_loop(now))

    assert offer.command == cmd.SetRate(rate=then)
    assert offer.label == f"{now:g}→{then:g}/s"


def test_a_ladder_of_rates_is_the_ramp_of_the_plan() -> None:
    plan = LoadPlan(rates=(3.0, 9.0))

    assert load_offer("+", open_loop(3.0, plan)).command == cmd.SetRate(rate=9.0)
    assert load_offer("+", open_loop(None, plan)).command == cmd.SetRate(rate=3.0)
    assert load_offer("r", open_loop(None, plan)).label == "ramp 3,9/s"


@pytest.mark.parametrize("key", ["-", "["])
def test_the_lowest_rate_goes_no_lower(key: str) -> None:
    assert load_offer(key, open_loop(0.1)).why_not == "0.1/s already"
    assert load_offer(key, open_loop(0.05)).command is None


def test_o_makes_an_open_loop_of_about_the_same_load_and_back() -> None:
    """556 tokens in a second, by 100 that each request asks for."""
    tick = LoadTick(at=9.5, in_flight=7, interval_s=1.0, output_tokens=556)
    plan = LoadPlan(output_tokens=100)
    closed = LoadChanged(at=2.0, state=LoadState.RUNNING, concurrency=8, plan=plan)

    to_rate = load_offer("o", view_of(READY, closed, tick, now=10.0))
    back = load_offer("o", open_loop(5.6, plan, tick))

    assert (to_rate.command, to_rate.label) == (cmd.SetRate(rate=5.6), "5.6/s open loop")
    assert (back.command, back.label) == (cmd.SetConcurrency(concurrency=7), "7 in flight")


def test_o_starts_an_open_loop_from_nothing() -> None:
    assert load_offer("o", open_loop(None)).command == cmd.SetRate(rate=1.0)
    assert load_offer("o", open_loop(None, LoadPlan(rates=(3.0,)))).label == "3/s open loop"


def test_the_first_step_from_nothing() -> None:
    view = view_of(READY, LoadChanged(at=2.0, state=LoadState.IDLE, plan=PLAN))

    assert load_offer("+", view).command == cmd.SetConcurrency(concurrency=1)
    assert load_offer("]", view).command is None
    assert load_offer("0", view).command is None


@pytest.mark.parametrize("key", ["-", "["])
def test_down_from_one_is_not_zero(key: str) -> None:
    """Stopping the load has a key of its own."""
    assert load_offer(key, loaded(1)).command is None


@pytest.mark.parametrize(
    ("state", "command"),
    [
        (LoadState.IDLE, cmd.StartRamp()),
        (LoadState.WARMUP, cmd.PauseLoad()),
        (LoadState.RUNNING, cmd.PauseLoad()),
        (LoadState.PAUSED, cmd.ResumeLoad()),
    ],
)
def test_r_starts_pauses_and_resumes(state: LoadState, command: cmd.Command) -> None:
    assert load_offer("r", loaded(8, state)).command == command


def test_r_names_the_ramp() -> None:
    assert load_offer("r", loaded(0, LoadState.IDLE)).label == "ramp 1,4,8,16,32"


def test_r_names_the_trace_that_it_replays() -> None:
    plan = LoadPlan(rates=(3.0,), requests=9, trace="/data/busy-monday.jsonl")
    assert load_offer("r", open_loop(None, plan)).label == "replay busy-monday.jsonl"


def test_zero_stops_the_load() -> None:
    assert load_offer("0", loaded(8)).command == cmd.StopLoad()


REFUSALS: list[tuple[list[Event], dict[str, object], str]] = [
    ([READY], {"access": Access(yours=False)}, "c takes them"),
    ([READY], {"access": Access(yours=False, read_only=True)}, "opened read-only"),
    ([READY], {"link": LinkState.LOST}, "no agent"),
    ([READY], {"play": PlayState(0.0, 9.0, True, 1.0)}, "replay"),
    ([], {}, "no server"),
    ([server(ServerState.STARTING, 1.0)], {}, "starting, not ready"),
]


@pytest.mark.parametrize(("events", "more", "why"), REFUSALS, ids=[why for *_, why in REFUSALS])
def test_a_key_that_does_nothing_says_why(
    events: list[Event], more: dict[str, object], why: str
) -> None:
    view = view_of(*events, **more)  # type: ignore[arg-type]

    for key in "+-][1r":
        offer = load_offer(key, view)
        assert offer.command is None
        assert why in offer.why_not


def test_load_can_be_stopped_whatever_the_server_does() -> None:
    view = view_of(
        server(ServerState.UNREACHABLE, 1.0),
        LoadChanged(at=2.0, state=LoadState.RUNNING, concurrency=8, plan=PLAN),
    )

    assert load_offer("0", view).command == cmd.StopLoad()
    assert load_offer("+", view).command is None


def test_stop_server() -> None:
    assert stop_server_offer(view_of(READY)).command == cmd.StopServer()
    external = view_of(server(ServerState.READY, 1.0, kind=HandleKind.EXTERNAL))
    assert stop_server_offer(external).command is None
    assert stop_server_offer(view_of(server(ServerState.FAILED, 1.0))).command is None


def test_launch_only_with_a_profile_and_without_a_server() -> None:
    launch = cmd.Watch(base_url="http://127.0.0.1:1")

    assert launch_offer(view_of(), launch).command is launch
    assert launch_offer(view_of(), None).command is None
    assert launch_offer(view_of(READY), launch).command is None
    assert launch_offer(view_of(server(ServerState.FAILED, 1.0)), launch).command is launch


def test_take_control_only_by_a_viewer_that_may() -> None:
    assert control_offer(view_of(access=Access(yours=False))).command == cmd.TakeControl()
    assert control_offer(view_of()).command is None
    assert control_offer(view_of(access=Access(yours=False, read_only=True))).command is None


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_key_bar_fits_and_always_says_how_to_leave(width: int) -> None:
    row = key_bar(loaded(8), None, width)

    assert row.width == width
    assert row.text.startswith("+ ] 8→16  - [ 8→4  r pause")
    assert "? keys  q leave" in row.text


def test_the_key_bar_shows_only_keys_that_work() -> None:
    text = key_bar(view_of(READY, access=Access(yours=False)), None, 160).text

    assert "c take control" in text
    assert "→" not in text
    assert "stop server" not in text


def test_the_key_bar_of_a_replay() -> None:
    text = key_bar(view_of(READY, play=PlayState(0.0, 9.0, True, 1.0)), None, 100).text

    assert text.startswith("space pause  ←→ 10 s")
    assert "ramp" not in text


def test_the_presets_are_named_where_there_is_room() -> None:
    assert "1…9 1…256" in key_bar(loaded(8), None, 100).text
    assert "1…9" not in key_bar(loaded(8), None, 80).text
    assert "1…9" not in key_bar(view_of(), None, 200).text
