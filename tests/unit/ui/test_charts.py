"""Cause and effect stand above each other."""

from __future__ import annotations

import pytest

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import GpuSourceState, ThrottleKind
from gpu_dash.model.log import Severity
from gpu_dash.model.server import ServerMetrics
from gpu_dash.ui.render.charts import Charts
from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.view import View
from tests.ui.scenes import began, gpu_infos, gpu_sample, ramp_scene
from tests.unit.ui.views import view_of

WIDTH, HEIGHT = 120, 21


def charts(view: View, width: int = WIDTH, height: int = HEIGHT) -> list[Row]:
    rows = Charts().rows(view, width, height)
    assert len(rows) == height
    assert all(row.width == width for row in rows)
    return rows


def lane(rows: list[Row], label: str) -> Row:
    return next(row for row in rows if row.text.strip().startswith(label))


def column_of(row: Row, text: str) -> int:
    return row.text.index(text)


def cells(row: Row) -> list[tuple[str, Role]]:
    return [(character, role) for text, role in row for character in text]


def is_dot(cell: tuple[str, Role]) -> bool:
    return "\u2800" < cell[0] <= "\u28ff"


def samples(at: float, *temperatures: float) -> ev.GpuSamples:
    return ev.GpuSamples(
        at=at,
        samples=tuple(
            gpu_sample(gpu, temperature_celsius=value) for gpu, value in enumerate(temperatures)
        ),
    )


def source(cards: int) -> ev.GpuSourceChanged:
    return ev.GpuSourceChanged(
        at=0.0, source="sim", state=GpuSourceState.LIVE, gpus=gpu_infos(cards)
    )


def test_a_step_is_one_column_in_all_charts_and_in_the_marks() -> None:
    rows = charts(view_of(*ramp_scene(8, 60.0)))

    steps = lane(rows, "step")
    column = column_of(steps, "┊4")
    above = [row.text[column] for row in rows[: rows.index(steps)]]
    assert above.count("┊") >= len(above) - 4


def test_the_throttle_span_stands_under_the_fall_of_the_throughput() -> None:
    events = list(ramp_scene(8, 95.0))
    rows = charts(view_of(*events))

    events_lane = lane(rows, "event")
    span = column_of(events_lane, "▬")
    assert "▬▲7▬" in events_lane.text
    throughput = [cells(row)[6:-16] for row in rows[:6]]
    highest = next(row for row in throughput if any(is_dot(cell) for cell in row))
    fall = max(x for x, cell in enumerate(highest) if is_dot(cell)) + 6
    assert 0 <= span - fall <= 2


def test_only_the_throttled_stretch_is_red() -> None:
    view = view_of(
        began(),
        source(1),
        *(samples(float(at), 60.0) for at in range(20)),
        ev.ThrottleBegan(at=20.0, gpu=0, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",)),
        *(samples(float(at), 90.0) for at in range(20, 40)),
        ev.ThrottleEnded(at=40.0, gpu=0, kind=ThrottleKind.THERMAL, began_at=20.0),
        *(samples(float(at), 60.0) for at in range(41, 60)),
    )

    dots = [
        (x, role)
        for row in charts(view)
        for x, (character, role) in enumerate(cells(row))
        if is_dot((character, role)) and role is Role.ALARM
    ]

    axis_width = WIDTH - 6 - 16
    seconds = sorted({(x - 6) / axis_width * 120.0 for x, _ in dots})
    assert seconds[0] == pytest.approx(20.0, abs=2.5)
    assert seconds[-1] == pytest.approx(40.0, abs=2.5)


def test_a_power_cap_paints_no_line_red() -> None:
    view = view_of(
        began(),
        source(1),
        ev.ThrottleBegan(at=0.0, gpu=0, kind=ThrottleKind.POWER_CAP, reasons=("sw_power_cap",)),
        *(samples(float(at), 60.0) for at in range(20)),
    )

    assert not any(role is Role.ALARM for row in charts(view) for _, role in row)


def test_missing_data_leave_a_gap() -> None:
    view = view_of(
        began(),
        source(1),
        *(samples(float(at), 60.0) for at in range(30)),
        *(samples(float(at), 60.0) for at in range(60, 90)),
    )

    rows = [row.text for row in charts(view)]
    line = max(rows, key=lambda text: sum("\u2800" < c <= "\u28ff" for c in text))
    axis_width = WIDTH - 6 - 16
    gap = line[6 + int(32 / 120 * axis_width) : 6 + int(58 / 120 * axis_width)]
    assert gap.strip() == ""


def test_few_cards_have_a_line_each_and_their_values_beside() -> None:
    view = view_of(began(), source(2), *(samples(float(at), 50.0, 70.0) for at in range(30)))

    rows = charts(view)

    beside = [row.text[-15:].strip() for row in rows]
    at = beside.index("temp °C")
    assert beside[at + 1 : at + 3] == ["1 70°", "0 50°"]


def test_of_many_cards_the_throttled_one_is_named_first() -> None:
    view = view_of(
        began(),
        source(8),
        ev.ThrottleBegan(at=0.0, gpu=2, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",)),
        *(samples(float(at), *(60.0 + gpu for gpu in range(8))) for at in range(30)),
    )

    beside = [row.text[-15:].strip() for row in charts(view)]

    at = beside.index("temp °C")
    assert beside[at + 1] == "2▲62°"
    assert beside[at + 2] == "7 67°"


def test_of_equal_cards_the_hottest_are_named() -> None:
    hot_last = tuple(
        gpu_sample(gpu, temperature_celsius=60.0 + gpu, sm_clock_mhz=1980.0) for gpu in range(16)
    )
    view = view_of(
        began(), source(16), *(ev.GpuSamples(at=float(at), samples=hot_last) for at in range(30))
    )

    beside = [row.text[-15:].strip() for row in charts(view, 160, 30)]

    at = beside.index("SM MHz")
    assert beside[at + 1 : at + 3] == ["15 1980", "14 1980"]


@pytest.mark.parametrize("cards", [4, 16])
def test_a_name_has_the_colour_of_its_line(cards: int) -> None:
    """The line before the throttle; what is now is red in both."""
    view = view_of(
        began(),
        source(cards),
        *(samples(float(at), *(60.0 + 5 * (gpu == 2) for gpu in range(cards)))
          for at in range(20)),
        ev.ThrottleBegan(at=20.0, gpu=2, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",)),
        *(samples(float(at), *(60.0 + 30 * (gpu == 2) for gpu in range(cards)))
          for at in range(20, 30)),
    )  # fmt: skip

    rows = charts(view)

    entry = next(row for row in rows if "2▲90°" in row.text)
    name = next(role for text, role in entry if text.endswith(" 2"))
    assert next(role for text, role in entry if text.startswith("▲90°")) is Role.ALARM
    temperature = rows[rows.index(entry) - 1 : rows.index(entry) + 5]
    before = {
        role
        for row in temperature
        for x, (character, role) in enumerate(cells(row))
        if 6 <= x < 20 and is_dot((character, role))
    }
    assert name in before


def test_no_line_covers_that_of_the_throttled_card() -> None:
    """Both cards are equally warm until card 0 throttles."""
    view = view_of(
        began(),
        source(2),
        *(samples(float(at), 60.0, 60.0) for at in range(20)),
        ev.ThrottleBegan(at=20.0, gpu=0, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",)),
        *(samples(float(at), 90.0, 60.0) for at in range(20, 30)),
    )

    rows = charts(view)

    entry = next(row for row in rows if "0▲90°" in row.text)
    name = next(role for text, role in entry if text.endswith(" 0"))
    first = rows.index(entry) - 1
    before = [cell for row in rows[first : first + 6] for cell in cells(row)[6:20]]
    assert {role for character, role in before if is_dot((character, role))} == {name}


def test_the_edges_of_the_healthy_cards_do_not_jump_when_another_throttles() -> None:
    """Card 2 is the hottest all the time; the next stays 20 degrees below it."""

    def sweep(at: int) -> ev.GpuSamples:
        return samples(float(at), *(88.0 if gpu == 2 else 66.0 for gpu in range(16)))

    view = view_of(
        began(),
        source(16),
        *(sweep(at) for at in range(20)),
        ev.ThrottleBegan(at=20.0, gpu=2, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",)),
        *(sweep(at) for at in range(20, 40)),
        ev.ThrottleEnded(at=40.0, gpu=2, kind=ThrottleKind.THERMAL, began_at=20.0),
        *(sweep(at) for at in range(40, 60)),
    )

    rows = charts(view, 160, 30)

    first = next(y for y, row in enumerate(rows) if "temp °C" in row.text)
    dotted = [sum(is_dot(cell) for cell in cells(row)[6:-16]) for row in rows[first : first + 5]]
    assert sum(count > 0 for count in dotted) == 2


def test_errors_are_marked_where_they_happened() -> None:
    view = view_of(
        began(),
        source(1),
        *(samples(float(at), 60.0) for at in range(60)),
        ev.Finding(at=30.0, kind="nccl_timeout", severity=Severity.ERROR, source="log"),
        ev.LoadTick(at=45.0, in_flight=1, interval_s=0.5, output_tokens=0, requests_failed=2),
    )

    marks = lane(charts(view), "event")

    found = [x for x, character in enumerate(marks.text) if character == "✗"]
    axis_width = WIDTH - 6 - 16
    assert found == [6 + int(second / 120 * axis_width) for second in (30, 45)]


CRASH = ev.Finding(at=33.0, kind="server_exit", severity=Severity.CRITICAL, source="server")


@pytest.mark.parametrize("height", [7, 11, HEIGHT])
def test_a_crash_is_one_cell_at_every_height(height: int) -> None:
    """Also where it shares its row with a step that began just before, and nothing follows it."""
    view = view_of(
        began(),
        source(1),
        *(samples(float(at), 60.0) for at in range(31)),
        ev.StepBegan(at=30.0, step=5, concurrency=32, first_sent_at=30.0),
        CRASH,
        now=60.0,
    )

    rows = charts(view, 80, height)

    shouted = [text for row in rows for text, role in row if role is Role.SHOUT]
    assert shouted == ["✗"]
    assert any("┊" in row.text for row in rows[-3:])


def test_the_server_s_own_tokens_are_shown_when_the_load_is_not_ours() -> None:
    view = view_of(
        began(),
        *(
            ev.ServerMetricsRead(
                at=float(at), metrics=ServerMetrics(generation_tokens_total=500.0 * at)
            )
            for at in range(30)
        ),
    )

    beside = [row.text[-15:].strip() for row in charts(view)]

    assert beside[:2] == ["server tok/s", "500"]


def test_without_data_there_are_words_and_no_zero() -> None:
    beside = [row.text[-15:].strip() for row in charts(view_of())]

    assert beside[:2] == ["tok/s", "no data yet"]


def test_data_that_left_the_window_are_not_said_to_be_missing() -> None:
    tick = ev.LoadTick(at=10.0, in_flight=1, interval_s=0.5, output_tokens=50, ttft_p50_s=0.03)
    old = (began(), source(1), samples(10.0, 60.0), tick)

    beside = [row.text[-15:].strip() for row in charts(view_of(*old, now=900.0), height=40)]

    for title in ("tok/s", "TTFT s", "power W, all"):
        assert beside[beside.index(title) + 1] == "none in view"


def test_equal_clocks_have_a_scale_of_round_numbers() -> None:
    view = view_of(
        began(),
        source(1),
        *(ev.GpuSamples(at=float(at), samples=(gpu_sample(0, sm_clock_mhz=1980.0),))
          for at in range(30)),
    )  # fmt: skip

    labels = [row.text[:5].strip() for row in charts(view, height=40)]

    assert "1.5k" in labels
    assert "1.75k" not in labels


def test_a_value_that_stays_away_is_no_longer_said() -> None:
    events: list[ev.Event] = [
        began(),
        ev.LoadTick(at=10.0, in_flight=1, interval_s=0.5, output_tokens=50),
    ]

    assert charts(view_of(*events, now=11.0))[1].text[-15:].strip() == "100"
    assert charts(view_of(*events, now=30.0))[1].text[-15:].strip() == "–"


def test_short_marks_share_one_row_with_the_times() -> None:
    last = charts(view_of(*ramp_scene(8, 95.0)), 80, 7)[-1].text

    assert "┊4" in last
    assert "▲7" in last
    assert last.rstrip().endswith("0:00–2:00")


@pytest.mark.parametrize("cards", [1, 4, 8, 16])
@pytest.mark.parametrize("size", [(60, 3), (80, 7), (100, 11), (160, 24), (200, 40)])
def test_every_size_is_filled(cards: int, size: tuple[int, int]) -> None:
    charts(view_of(*ramp_scene(cards, 40.0)), *size)
