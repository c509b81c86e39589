"""Server, load and notice lines: the word first, its age, and no stale number that looks live."""

from __future__ import annotations

import pytest

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import ThrottleKind
from gpu_dash.model.load import (
    ExpectedBand,
    LoadMode,
    LoadPlan,
    LoadState,
    Outcome,
    RequestRecord,
    StepResult,
)
from gpu_dash.model.log import Severity
from gpu_dash.model.server import HandleKind, ServerMetrics, ServerState
from gpu_dash.ui.feed import Access, LinkState, PlayState
from gpu_dash.ui.render.load_lines import load_rows
from gpu_dash.ui.render.notice_lines import notice_rows
from gpu_dash.ui.render.play_bar import play_rows
from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.render.server_line import server_rows
from gpu_dash.ui.render.steps_table import steps_rows
from gpu_dash.ui.view import Message, View
from tests.ui.scenes import began, server
from tests.unit.ui.views import view_of

PLAN = LoadPlan(ramp=(1, 4, 8), step_s=20.0, warmup_s=3.0)


def role_of(row: Row, text: str) -> Role:
    return next(role for part, role in row if text in part)


def header(view: View, width: int = 120) -> str:
    (row,) = server_rows(view, width, 1)
    assert row.width == width
    return row.text


# -- server ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (server(ServerState.READY, 100.0), "READY 12s"),
        (server(ServerState.STOPPING, 100.0), "STOPPING 12s"),
        (server(ServerState.STOPPED, 100.0), "STOPPED 12s"),
        (
            server(ServerState.FAILED, 100.0, exit_code=1, detail="exit code 1: out of memory"),
            "FAILED 12s  out of memory  exit code 1",
        ),
        (
            server(ServerState.UNREACHABLE, 100.0, detail="/health: connection refused"),
            "UNREACHABLE 12s  /health: connection refused",
        ),
        (
            server(
                ServerState.STARTING,
                100.0,
                stage="loading weights",
                stage_since=104.0,
                stage_progress=0.5,
            ),
            "STARTING 12s  loading weights 8s ━━━━━───── 50%",
        ),
        (
            server(ServerState.READY, 100.0, kind=HandleKind.EXTERNAL),
            "READY 12s  acme/model-32b (external)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_state_is_a_word_with_its_age(event: ev.ServerChanged, words: str) -> None:
    assert words in header(view_of(event, now=112.0))


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        (
            "exit code 1: (EngineCore pid=16405) ERROR 11-30 22:33:29 [multiproc_executor.py:315] "
            "Worker proc VllmWorker-2 died unexpectedly (exit code: -9)",
            "Worker proc VllmWorker-2 died unexpectedly (exit code: -9)  exit code 1",
        ),
        ("ended by signal 9 (SIGKILL): killed", "FAILED 12s  killed  ended by signal 9 (SIGKILL)"),
        ("ended by signal 9 (SIGKILL)", "FAILED 12s  ended by signal 9 (SIGKILL)  "),
        ("no answer: exit code 7: of another", "FAILED 12s  no answer: exit code 7: of another"),
    ],
)
def test_a_failure_begins_with_its_cause_and_has_its_ending_once(detail: str, words: str) -> None:
    assert words in header(view_of(server(ServerState.FAILED, 100.0, detail=detail), now=112.0))


def test_no_server_says_what_to_do() -> None:
    assert "NO SERVER  start gpu-dash with a profile" in header(view_of())
    assert "l launches one" in header(view_of(can_launch=True))


def test_metrics_turn_grey_when_they_stay_away() -> None:
    metrics = ServerMetrics(running_requests=16, waiting_requests=3, kv_cache_usage=0.41)
    events = (
        server(ServerState.READY, 100.0),
        ev.ServerMetricsRead(at=110.0, metrics=metrics),
    )

    assert "running 16 waiting 3 KV 41%" in header(view_of(*events, now=111.0))
    (row,) = server_rows(view_of(*events, now=122.0), 120, 1)
    assert "running 16 waiting 3 KV 41% 12s ago" in row.text
    assert role_of(row, "running 16") is Role.DIM


def test_a_failed_server_shows_no_metrics() -> None:
    view = view_of(
        server(ServerState.READY, 100.0),
        ev.ServerMetricsRead(at=110.0, metrics=ServerMetrics(running_requests=73)),
        server(ServerState.FAILED, 111.0, exit_code=-9, detail="ended by signal 9"),
    )

    assert "73" not in header(view)


def test_a_lost_agent_is_said_first() -> None:
    view = view_of(server(ServerState.READY, 100.0), link=LinkState.LOST, now=112.0)

    assert "AGENT GONE" in header(view)
    assert "READY" not in header(view)


@pytest.mark.parametrize(
    ("access", "play", "words"),
    [
        (Access(yours=False), None, "read-only"),
        (Access(viewers=3), None, "3 viewers"),
        (Access(), None, "demo"),
        (Access(yours=False), PlayState(0.0, 1.0, False, 1.0), "replay demo"),
    ],
)
def test_whose_controls(access: Access, play: PlayState | None, words: str) -> None:
    assert header(view_of(began(), access=access, play=play)).rstrip().endswith(words)


def test_a_long_model_name_leaves_the_rest_of_the_line() -> None:
    view = view_of(server(ServerState.READY, 1.0, model="x" * 300), access=Access(yours=False))

    assert header(view, 80).endswith("read-only")


# -- load --------------------------------------------------------------------------------------


def load(state: LoadState, **more: object) -> ev.LoadChanged:
    values: dict[str, object] = {"mode": LoadMode.RAMP, "concurrency": 4, "plan": PLAN}
    return ev.LoadChanged(at=100.0, state=state, **(values | more))  # type: ignore[arg-type]


def tick(at: float, tokens: int = 500) -> ev.LoadTick:
    return ev.LoadTick(at=at, in_flight=4, interval_s=0.5, output_tokens=tokens)


@pytest.mark.parametrize(
    ("event", "now", "words"),
    [
        (load(LoadState.IDLE, concurrency=0, mode=LoadMode.NONE), 100.0, "load IDLE"),
        (
            load(LoadState.WARMUP, window_opens_at=103.0),
            101.0,
            "WARM-UP  4 concurrent  ramp step 2 of 3  window opens in 2s",
        ),
        (
            load(LoadState.WARMUP, window_opens_at=103.0),
            104.0,
            "waits for the requests of the step before",
        ),
        (
            load(LoadState.RUNNING, window_opens_at=103.0, window_closes_at=123.0),
            113.0,
            "RUNNING  4 concurrent  ramp step 2 of 3  window ━━━━━━────── 10/20s",
        ),
        (load(LoadState.PAUSED), 100.0, "PAUSED  4 concurrent"),
        (load(LoadState.RUNNING, mode=LoadMode.MANUAL, concurrency=6), 100.0, "by hand"),
        (
            load(LoadState.DRAINING, concurrency=0, detail="3 left"),
            100.0,
            "DRAINING  the last requests end  3 left",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_where_the_load_stands(event: ev.LoadChanged, now: float, words: str) -> None:
    assert words in load_rows(view_of(event, now=now), 120, 2)[0].text


def test_throughput_is_tokens_by_time_and_turns_grey() -> None:
    events = (load(LoadState.RUNNING), tick(104.0), tick(104.5), tick(105.0), tick(105.5))

    live = load_rows(view_of(*events, now=106.0), 120, 2)[1]
    stale = load_rows(view_of(*events, now=117.5), 120, 2)[1]

    assert "1,000 tok/s" in live.text
    assert role_of(live, "1,000") is Role.STRONG
    assert "1,000 tok/s 12s ago" in stale.text
    assert role_of(stale, "1,000") is Role.DIM


def test_no_throughput_is_a_dash_not_zero() -> None:
    assert "– tok/s" in load_rows(view_of(), 120, 2)[1].text
    over = (tick(104.0), load(LoadState.IDLE, concurrency=0))
    assert "– tok/s" in load_rows(view_of(*over, now=130.0), 120, 2)[1].text


def test_without_our_load_the_server_s_own_throughput_is_shown_as_such() -> None:
    readings = (
        ev.ServerMetricsRead(at=at, metrics=ServerMetrics(generation_tokens_total=total))
        for at, total in ((1.0, 0.0), (2.0, 2656.0))
    )

    assert "server 2,656 tok/s" in load_rows(view_of(*readings), 120, 2)[1].text


def test_ttft_is_that_of_the_last_step_and_says_so() -> None:
    result = StepResult(
        step=2, concurrency=4, time_s=1.0, duration_s=20.0, elapsed_s=22.0,
        ttft_p50_s=0.12, ttft_p99_s=1.34,
    )  # fmt: skip

    row = load_rows(view_of(ev.StepEnded(at=9.0, result=result)), 120, 2)[1]

    assert "TTFT p50 120 ms p99 1.34 s (step at 4)" in row.text


def test_until_a_step_has_ended_the_newest_ttft_is_shown_as_live() -> None:
    first_tokens = ev.LoadTick(
        at=104.0, in_flight=1, interval_s=0.5, output_tokens=9, ttft_p50_s=0.029
    )
    events = (load(LoadState.RUNNING), first_tokens, tick(105.0))

    for width in (80, 120):
        assert "TTFT p50 29 ms (live)" in load_rows(view_of(*events, now=106.0), width, 2)[1].text
    assert "TTFT –" in load_rows(view_of(*events, now=130.0), 120, 2)[1].text


@pytest.mark.parametrize(
    ("concurrencies", "words"),
    [
        ((1, 4, 8), "load IDLE  the ramp has ended, best 400 tok/s at 4 concurrent"),
        ((6, 1, 4, 8), "load IDLE  the ramp has ended, best 600 tok/s at 6 concurrent"),
        ((1, 4), "load IDLE  steps ended: 2, best 400 tok/s at 4 concurrent"),
        ((), "load IDLE    "),
    ],
)
def test_after_the_load_its_best_step_is_told(concurrencies: tuple[int, ...], words: str) -> None:
    rates = {1: 100.0, 4: 400.0, 6: 600.0, 8: 300.0}
    results = [
        StepResult(
            step=n, concurrency=c, time_s=1.0, duration_s=9.0, elapsed_s=9.0,
            output_tokens_per_s=rates[c],
        )
        for n, c in enumerate(concurrencies)
    ]  # fmt: skip
    idle = load(LoadState.IDLE, concurrency=0, mode=LoadMode.NONE)
    view = view_of(*(ev.StepEnded(at=9.0, result=result) for result in results), idle)

    assert words in load_rows(view, 80, 2)[0].text


def test_failed_requests_are_an_alarm() -> None:
    requests = tuple(
        RequestRecord(request=n, step=1, concurrency=4, scheduled=1.0, sent=1.0, outcome=outcome)
        for n, outcome in enumerate((Outcome.OK, Outcome.OK, Outcome.TIMEOUT))
    )
    row = load_rows(view_of(ev.RequestsEnded(at=2.0, requests=requests)), 120, 2)[1]

    assert "ok 2 failed 1" in row.text
    assert role_of(row, "failed") is Role.ALARM


@pytest.mark.parametrize("width", [60, 80, 200])
def test_load_rows_fit(width: int) -> None:
    for height in (1, 2):
        rows = load_rows(view_of(load(LoadState.RUNNING), tick(104.0)), width, height)
        assert [row.width for row in rows] == [width] * height


def test_the_steps_table_marks_the_best_and_the_throttled() -> None:
    results = [
        StepResult(
            step=n, concurrency=c, time_s=1.0, duration_s=9.0, elapsed_s=9.0,
            output_tokens_per_s=rate, throttle_thermal_s=hot, requests_failed=n - 1,
        )
        for n, c, rate, hot in ((1, 8, 700.0, 0.0), (2, 16, 650.0, 4.2))
    ]  # fmt: skip

    rows = steps_rows(view_of(*(ev.StepEnded(at=9.0, result=r) for r in results)), 54, 9)

    assert role_of(rows[1], "700") is Role.GOOD
    assert role_of(rows[2], "650") is Role.PLAIN
    assert role_of(rows[2], "4") is Role.ALARM
    assert all(row.width == 54 for row in rows)


# -- notice ------------------------------------------------------------------------------------


def finding(at: float, kind: str, **more: object) -> ev.Finding:
    values: dict[str, object] = {
        "severity": Severity.ERROR, "source": "log", "message": f"about {kind}",
    }  # fmt: skip
    return ev.Finding(at=at, kind=kind, **(values | more))  # type: ignore[arg-type]


def notice(view: View, height: int = 2) -> list[str]:
    return [row.text.rstrip() for row in notice_rows(view, 100, height)]


def test_the_newest_finding_has_a_sign_a_kind_an_age_and_a_first_check() -> None:
    view = view_of(
        finding(5.0, "oom_runtime"),
        finding(88.0, "nccl_timeout", subject="rank:1", first_check="throttle reasons"),
        now=100.0,
    )

    assert notice(view) == [
        "✗ nccl_timeout rank:1 12s ago  about nccl_timeout",
        "  check throttle reasons",
    ]


def test_of_a_log_line_only_the_message_is_told() -> None:
    line = "(EngineCore pid=16405) ERROR 11-30 22:33:29 [core.py:1512] RuntimeError: no"

    of_log = view_of(finding(5.0, "engine_dead", message=line, line=7))
    of_server = view_of(finding(5.0, "server_exit", message=line))

    assert notice(of_log)[0] == "✗ engine_dead 0s ago  RuntimeError: no"
    assert notice(of_server)[0] == f"✗ server_exit 0s ago  {line}"


def test_a_crash_is_told_by_its_cause_not_by_its_echo() -> None:
    view = view_of(
        finding(10.0, "nccl_timeout"),
        finding(11.0, "engine_dead", root=False),
        finding(12.0, "server_exit", source="server", severity=Severity.CRITICAL),
    )

    assert notice(view)[0].startswith("✗ nccl_timeout")


def test_an_old_cause_does_not_explain_a_new_finding() -> None:
    view = view_of(finding(10.0, "nccl_timeout"), finding(500.0, "engine_dead", root=False))

    assert notice(view)[0].startswith("✗ engine_dead")


def test_a_thermal_throttle_is_news_and_a_power_cap_is_not() -> None:
    cap = ev.ThrottleBegan(at=9.0, gpu=5, kind=ThrottleKind.POWER_CAP, reasons=("sw_power_cap",))
    thermal = ev.ThrottleBegan(
        at=5.0, gpu=3, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",),
        temperature_celsius=93.0, sm_clock_mhz=1005.0,
    )  # fmt: skip

    assert notice(view_of(cap))[0] == "· no finding"
    assert notice(view_of(thermal, cap, now=17.0))[0] == (
        "✗ thermal throttle gpu:3 12s ago  hw_thermal  93 °C  SM clock 1005 MHz"
    )


def test_what_the_last_key_met_comes_first() -> None:
    view = view_of(finding(5.0, "oom"), message=Message("no server runs: nothing to load"))

    assert notice(view)[0] == "no server runs: nothing to load"


def test_a_lost_agent_is_explained() -> None:
    assert notice(view_of(link=LinkState.LOST))[0] == "why and what to do"


def test_a_notice_of_gpu_dash_itself_is_shown() -> None:
    full = ev.Notice(at=9.0, severity=Severity.ERROR, text="the disk is full")

    assert notice(view_of(finding(5.0, "oom"), full, now=10.0))[0] == "✗ 1s ago  the disk is full"


# -- replay ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("play", "words"),
    [
        (PlayState(133.0, 640.0, True, 2.0), "▶ PLAYING 2:13 / 10:40 ×2 "),
        (PlayState(640.0, 640.0, False, 1.0), "‖ PAUSED  10:40 / 10:40 ×1 "),
        (PlayState(0.0, 0.0, False, 1.0), "‖ PAUSED  0:00 / 0:00 ×1 "),
    ],
)
def test_the_play_bar(play: PlayState, words: str) -> None:
    (row,) = play_rows(view_of(play=play), 80, 1)

    assert row.text.startswith(words)
    assert row.width == 80


BANDED = LoadPlan(
    ramp=(8, 32),
    expected=ExpectedBand(concurrency=32, output_tokens_per_s=(900.0, 1100.0), ttft="500ms"),
)


def ended_step(concurrency: int, rate: float) -> ev.StepEnded:
    result = StepResult(
        step=1, concurrency=concurrency, time_s=0.0, duration_s=20.0, elapsed_s=21.0,
        output_tokens_per_s=rate, ttft_p50_s=0.3,
    )  # fmt: skip
    return ev.StepEnded(at=30.0, result=result)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (
            [ev.LoadChanged(at=1.0, state=LoadState.RUNNING, concurrency=32, plan=BANDED)],
            "(expected 900–1,100 tok/s)",
        ),
        (
            [ev.LoadChanged(at=1.0, state=LoadState.IDLE, plan=BANDED)],
            "(expected 900–1,100 tok/s at 32)",
        ),
        (
            [ended_step(32, 850.0), ev.LoadChanged(at=31.0, state=LoadState.IDLE, plan=BANDED)],
            "(below the expected 900–1,100 tok/s, TTFT within 500ms at 32)",
        ),
    ],
)
def test_the_expected_band_stands_beside_what_the_load_brings(
    events: list[ev.Event], words: str
) -> None:
    rows = load_rows(view_of(*events), 160, 2)

    assert words in rows[1].text


def test_a_band_of_another_concurrency_is_not_shown_while_the_load_runs() -> None:
    running = ev.LoadChanged(at=1.0, state=LoadState.RUNNING, concurrency=8, plan=BANDED)

    assert "expected" not in load_rows(view_of(running), 160, 2)[1].text


def test_the_steps_table_says_which_step_keeps_the_band() -> None:
    view = view_of(
        ev.LoadChanged(at=1.0, state=LoadState.RUNNING, concurrency=32, plan=BANDED),
        ended_step(8, 300.0),
        ended_step(32, 950.0),
        ended_step(32, 850.0),
    )

    signs = [row.text[0] for row in steps_rows(view, 54, 4)[1:]]
    assert signs == [" ", "✓", "▼"]
