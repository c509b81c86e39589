"""Every moment of a recording can be asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_dash.model import events as ev
from gpu_dash.model.errors import RecordError
from gpu_dash.model.log import Severity
from gpu_dash.record.replay import Replay
from tests.unit.record.recorded import record, session_events


def notice(at: float) -> ev.Notice:
    return ev.Notice(at=at, severity=Severity.INFO, text=f"{at}")


REPLAY = Replay([notice(at) for at in (-0.5, 0.0, 1.0, 1.0, 2.5, 4.0)])


@pytest.mark.parametrize(
    ("position_s", "count"), [(-1.0, 0), (0.0, 2), (0.9, 2), (1.0, 4), (2.5, 5), (99.0, 6)]
)
def test_everything_until_a_moment(position_s: float, count: int) -> None:
    assert len(REPLAY.events_until(position_s)) == count


@pytest.mark.parametrize(
    ("start_s", "end_s", "times"),
    [
        (0.0, 1.0, [1.0, 1.0]),
        (1.0, 2.5, [2.5]),
        (1.0, 1.0, []),
        (2.0, 99.0, [2.5, 4.0]),
        (4.0, 99.0, []),
    ],
)
def test_what_happened_between_two_moments(
    start_s: float, end_s: float, times: list[float]
) -> None:
    assert [event.at for event in REPLAY.events_between(start_s, end_s)] == times


def test_playing_forward_is_the_same_as_jumping_there() -> None:
    played = list(REPLAY.events_until(0.0))
    for start, end in ((0.0, 0.7), (0.7, 1.0), (1.0, 3.0), (3.0, 4.0)):
        played += REPLAY.events_between(start, end)
    assert played == list(REPLAY.events_until(4.0))


def test_it_lasts_from_the_start_to_the_last_event() -> None:
    assert REPLAY.duration_s == 4.0
    assert Replay([]).duration_s == 0.0
    assert Replay([]).events_until(5.0) == ()


def test_a_folder_is_a_replay(tmp_path: Path) -> None:
    record(tmp_path, session_events())
    replay = Replay.load(tmp_path)
    assert replay.duration_s == 60.0
    assert isinstance(replay.events_until(0.0)[0], ev.SessionBegan)
    assert len(replay.events_until(60.0)) > len(replay.events_until(30.0)) > 100


def test_no_session_no_replay(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="holds no session"):
        Replay.load(tmp_path)
