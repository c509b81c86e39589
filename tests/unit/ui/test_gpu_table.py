"""Every card has its line; the one that throttles is told from all others in words."""

from __future__ import annotations

import pytest

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import GpuSourceState, ThrottleKind
from gpu_dash.model.server import ServerState
from gpu_dash.ui.feed import LinkState
from gpu_dash.ui.render.gpu_table import gpu_rows
from gpu_dash.ui.render.row import Role, Row
from gpu_dash.ui.view import View
from tests.ui.scenes import gpu_infos, gpu_sample, server, thermal_and_cap_scene
from tests.unit.ui.views import view_of


def live(cards: int = 2) -> ev.GpuSourceChanged:
    return ev.GpuSourceChanged(
        at=0.0, source="nvml", state=GpuSourceState.LIVE, gpus=gpu_infos(cards)
    )


def table(view: View, width: int = 80, columns: int = 1) -> list[Row]:
    height = len(view.store.gpus) // columns + 1
    return gpu_rows(view, width, max(2, height), columns, titles=True)


def roles_of(row: Row, text: str) -> set[Role]:
    return {role for part, role in row if text in part}


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 200])
def test_the_thermal_and_cap_scene(width: int) -> None:
    """Card 3 throttles thermally, card 5 is merely at its power cap."""
    rows = table(view_of(*thermal_and_cap_scene()), width)

    assert len(rows) == 9
    assert all(row.width == width for row in rows)
    card_3, card_5 = rows[4], rows[6]
    assert card_3.text.startswith(" 3▲")
    assert "THERMAL" in card_3.text
    assert roles_of(card_3, "THERMAL") == {Role.SHOUT}
    assert "93°" in card_3.text
    assert "1005" in card_3.text
    assert roles_of(card_3, "1005") == {Role.ALARM}
    assert "cap" in card_5.text
    assert "THERMAL" not in card_5.text
    alarming = {Role.ALARM, Role.SHOUT, Role.WARN}
    calm = [row for row in rows[1:] if row is not card_3]
    assert not any(role in alarming for row in calm for _, role in row)


def test_the_reason_is_named_where_there_is_room() -> None:
    (card_3,) = table(view_of(*thermal_and_cap_scene()), 120)[4:5]

    assert "THERMAL 12s sw_thermal hw_thermal" in card_3.text


def test_sixteen_cards_at_eighty_columns() -> None:
    began = ev.ThrottleBegan(at=1.0, gpu=15, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",))
    samples = tuple(gpu_sample(gpu) for gpu in range(16))
    view = view_of(live(16), began, ev.GpuSamples(at=1.0, samples=samples))

    rows = table(view, 80, columns=2)

    assert len(rows) == 9
    for gpu in range(8):
        line = rows[1 + gpu].text
        assert line.startswith(f"{gpu:>2}")
        assert f"{gpu + 8:>2}" in line[38:44]
        assert line.count("/700") == 2
    assert rows[8].text.endswith("THERMAL ")


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (ThrottleKind.THERMAL, "THERMAL"),
        (ThrottleKind.POWER_BRAKE, "BRAKE"),
        (ThrottleKind.SLOWDOWN, "SLOWED"),
    ],
)
def test_alarms_have_a_word_each(kind: ThrottleKind, word: str) -> None:
    view = view_of(
        live(),
        ev.ThrottleBegan(at=1.0, gpu=1, kind=kind, reasons=("reason",)),
        ev.GpuSamples(at=1.0, samples=(gpu_sample(0), gpu_sample(1))),
    )

    assert word in table(view)[2].text


def test_a_power_cap_that_costs_clock_is_a_warning_with_the_deficit() -> None:
    view = view_of(
        live(),
        ev.ThrottleBegan(at=1.0, gpu=1, kind=ThrottleKind.POWER_CAP, reasons=("sw_power_cap",)),
        ev.GpuSamples(at=1.0, samples=(gpu_sample(0), gpu_sample(1, sm_clock_mhz=1485.0))),
    )

    row = table(view)[2]

    assert "cap −25%" in row.text
    assert roles_of(row, "cap") == {Role.WARN}
    assert "▲" not in row.text


def test_a_power_cap_whose_clock_is_back_is_no_warning() -> None:
    view = view_of(
        live(),
        ev.ThrottleBegan(at=1.0, gpu=1, kind=ThrottleKind.POWER_CAP, reasons=("sw_power_cap",)),
        ev.GpuSamples(at=1.0, samples=(gpu_sample(0), gpu_sample(1, sm_clock_mhz=1965.0))),
    )

    for width in (60, 80, 160):
        row = table(view, width)[2]
        assert "cap" in row.text
        assert "−" not in row.text
        assert not any(role in (Role.WARN, Role.ALARM) for _, role in row)


def test_the_worst_of_several_throttles_is_named() -> None:
    view = view_of(
        live(),
        ev.ThrottleBegan(at=1.0, gpu=0, kind=ThrottleKind.POWER_CAP, reasons=("sw_power_cap",)),
        ev.ThrottleBegan(at=2.0, gpu=0, kind=ThrottleKind.THERMAL, reasons=("hw_thermal",)),
        ev.GpuSamples(at=2.0, samples=(gpu_sample(0),)),
    )

    assert "THERMAL" in table(view)[1].text
    assert "cap" not in table(view)[1].text


def test_a_card_near_its_limit_is_a_warning() -> None:
    view = view_of(live(), ev.GpuSamples(at=1.0, samples=(gpu_sample(0, headroom_celsius=3.0),)))

    assert roles_of(table(view)[1], "62°") == {Role.WARN}


@pytest.mark.parametrize(
    ("age", "is_grey"), [(0.5, False), (2.9, False), (3.1, True), (12.0, True)]
)
def test_a_reading_that_stays_away_turns_grey_with_its_age(age: float, is_grey: bool) -> None:
    view = view_of(live(1), ev.GpuSamples(at=1.0, samples=(gpu_sample(0),)), now=1.0 + age)

    row = table(view)[1]

    assert ({role for _, role in row} == {Role.DIM}) == is_grey
    assert (f"{int(age)}s ago" in row.text) == is_grey


def test_one_silent_card_does_not_grey_the_others() -> None:
    view = view_of(
        live(),
        ev.GpuSamples(at=1.0, samples=(gpu_sample(0), gpu_sample(1))),
        ev.GpuSamples(at=9.0, samples=(gpu_sample(0),)),
    )

    assert "8s ago" in table(view)[2].text
    assert "ago" not in table(view)[1].text


def test_a_lost_card_says_why() -> None:
    view = view_of(
        live(),
        ev.GpuSamples(at=1.0, samples=(gpu_sample(0), gpu_sample(1))),
        ev.GpuReadFailed(at=1.5, gpu=1, call="nvmlDeviceGetTemperature", error="GPU is lost",
                         lost=True),
    )  # fmt: skip

    row = table(view)[2]

    assert "LOST GPU is lost" in row.text
    assert roles_of(row, "LOST") == {Role.ALARM}


def test_a_card_that_never_answered_says_so() -> None:
    assert "no reading yet" in table(view_of(live()))[1].text


@pytest.mark.parametrize("state", [GpuSourceState.STALE, GpuSourceState.FAILED])
def test_a_source_in_trouble_is_named_with_what_to_do(state: GpuSourceState) -> None:
    view = view_of(
        live(),
        ev.GpuSamples(at=1.0, samples=(gpu_sample(0), gpu_sample(1))),
        ev.GpuSourceChanged(at=5.0, source="nvml", state=state, detail="a driver call hangs"),
        now=12.0,
    )

    heading = table(view, 120)[0].text

    assert f"{state.upper()} 7s" in heading
    assert "a driver call hangs" in heading


def test_no_source_says_why_in_words() -> None:
    view = view_of(
        ev.GpuSourceChanged(
            at=1.0, source="none", state=GpuSourceState.NONE,
            detail="no NVIDIA driver: libnvidia-ml.so.1 is not there",
        )
    )  # fmt: skip

    assert "no NVIDIA driver" in table(view)[0].text


def test_a_long_reason_takes_the_free_rows() -> None:
    why = "no NVIDIA driver: libnvidia-ml.so.1 is not there; no AMD driver either, so install one"
    view = view_of(
        ev.GpuSourceChanged(at=1.0, source="none", state=GpuSourceState.NONE, detail=why)
    )

    wrapped = gpu_rows(view, 60, 2, 1, titles=True)
    cut = gpu_rows(view, 60, 1, 1, titles=True)

    assert " ".join(" ".join(row.text for row in wrapped).split()) == f"GPU none {why}"
    assert [row.width for row in (*wrapped, *cut)] == [60, 60, 60]
    assert cut[0].text.rstrip().endswith("…")


def test_values_that_a_card_does_not_offer_are_dashes() -> None:
    sample = gpu_sample(
        0, temperature_celsius=None, headroom_celsius=None, power_watts=None,
        sm_clock_mhz=None, utilization_percent=None, memory_used_bytes=None,
    )  # fmt: skip

    for width in (60, 80, 160):
        row = table(view_of(live(1), ev.GpuSamples(at=1.0, samples=(sample,))), width)[1]
        assert row.text.count("–") >= 4
        assert "None" not in row.text


def test_without_the_agent_nothing_looks_live() -> None:
    view = view_of(*thermal_and_cap_scene(), link=LinkState.LOST)

    assert all(role is Role.DIM for row in table(view)[1:] for _, role in row)


def test_a_card_that_the_server_does_not_use_is_told_from_one_that_idles() -> None:
    view = view_of(
        live(),
        server(ServerState.READY, 0.5, visible_gpus=(0,)),
        ev.GpuSamples(at=1.0, samples=(gpu_sample(0), gpu_sample(1))),
    )

    assert "unused" not in table(view)[1].text
    assert "unused by the server" in table(view)[2].text


def test_a_hot_card_over_a_kilowatt_fits_every_width() -> None:
    sample = gpu_sample(
        0, temperature_celsius=104.0, headroom_celsius=-14.0, power_watts=1187.0,
        power_limit_watts=1200.0, utilization_percent=100.0,
    )  # fmt: skip

    for width, power in ((29, "1187"), (39, "1187"), (80, "1187/1200")):
        row = table(view_of(live(1), ev.GpuSamples(at=1.0, samples=(sample,))), width)[1].text
        assert "104°" in row
        assert power in row
        assert "…" not in row
