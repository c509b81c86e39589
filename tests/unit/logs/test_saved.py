"""A saved log and saved readings: whole, in order, in constant memory."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from gpu_dash.logs import saved
from gpu_dash.logs.saved import SavedLog
from gpu_dash.logs.saved_readings import SavedReadings
from gpu_dash.model.errors import UsageError
from tests.unit.logs.saying import capture, read

MOMENT = datetime(2026, 11, 30, 10, 15, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("name", ["worker-killed", "worker-frozen", "kill9_worker", "dp2_tree"])
def test_a_saved_log_tells_what_a_followed_one_comes_to(name: str) -> None:
    data = capture(name)
    log = SavedLog(io.BytesIO(data))

    assert [finding for finding, _ in log.findings()] == [
        # ``at`` is the reader's clock.
        type(f)(**{**{n: getattr(f, n) for n in f.__struct_fields__}, "at": 0.0})
        for f in read([data])[1]
    ]
    assert log.line_count == data.count(b"\n")


def test_a_line_without_a_stamp_was_written_about_when_the_one_above_it_was() -> None:
    log = SavedLog(
        io.BytesIO(
            b"(Worker_TP0 pid=7) INFO 11-30 10:00:00 [worker.py:1] hello\n"
            b"RuntimeError: NCCL error: internal error\n"
        )
    )

    assert [stamp for _, stamp in log.findings()] == ["11-30 10:00:00"]


class _Endless(io.RawIOBase):
    """A log that says another error in every second line."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks

    def read(self, size: int = -1) -> bytes:
        return next(self._blocks, b"")


def _errors(count: int) -> Iterator[bytes]:
    for block in range(0, count, 1000):
        yield b"".join(
            b"(Worker_TP1 pid=77) ERROR 11-30 10:%02d:%02d [a.py:1] odd number %d\nfiller\n"
            % (n // 60 % 60, n % 60, n)
            for n in range(block, block + 1000)
        )


def _peak_bytes(count: int) -> tuple[int, list[int]]:
    tracemalloc.start()
    log = SavedLog(_Endless(_errors(count)))  # type: ignore[arg-type]
    lines = []
    for finding, _ in log.findings():
        lines.append(finding.line or 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - 64 * len(lines), lines


def test_memory_does_not_grow_with_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "MOST_HELD", 500)
    small, few = _peak_bytes(6_000)
    large, many = _peak_bytes(12_000)

    assert large < small * 1.4
    assert few == list(range(1, 12_000, 2))
    assert many == list(range(1, 24_000, 2))


# -- readings ----------------------------------------------------------------------------------

OURS = (
    "time_utc,gpu,temperature_celsius,sm_clock_mhz,sm_clock_max_mhz,throttle_reasons,"
    "throttle_thermal_s,headroom_celsius\n"
    "2026-11-30T10:15:01.000Z,0,61,1980,1980,sw_power_cap,0,26\n"
    "2026-11-30T10:15:01.000Z,2,94,1170,1980,hw_thermal+hw_slowdown,0,\n"
    "2026-11-30T10:15:02.000Z,2,91,1200,1980,,0,-1\n"
)
SMI = (
    "timestamp, index, temperature.gpu, clocks.current.sm [MHz], clocks.max.sm [MHz], "
    "clocks_event_reasons.active\n"
    "2026/11/30 10:15:01.123, 0, 61, 1980 MHz, 1980 MHz, 0x0000000000000004\n"
    "2026/11/30 10:15:01.124, 2, 94, 1170 MHz, 1980 MHz, 0x0000000000000048\n"
)
SMI_WORDS = (
    "timestamp, index, temperature.gpu, clocks.sm [MHz], "
    "clocks_throttle_reasons.hw_thermal_slowdown\n"
    "2026/11/30 10:15:01.123, 0, 61, 1980 MHz, Not Active\n"
    "2026/11/30 10:15:01.124, 2, 94, 1170 MHz, Active\n"
)


@pytest.mark.parametrize("text", [OURS, SMI, SMI_WORDS])
def test_readings_tell_the_throttled_card_from_the_cool_one(text: str) -> None:
    readings = SavedReadings(text.splitlines(), "gpu.csv", UTC)

    cool, hot = readings.between(MOMENT - 60, MOMENT + 60)

    assert (cool.gpu, cool.is_hot, cool.peak_temperature_celsius) == (0, False, 61)
    assert (hot.gpu, hot.thermal_reasons) == (2, ("hw_thermal",))
    assert (hot.peak_temperature_celsius, hot.lowest_sm_clock_mhz) == (94, 1170)
    assert readings.between(MOMENT - 7200, MOMENT - 3600) == ()


def test_a_throttle_between_two_polls_is_seen_by_the_drivers_counter() -> None:
    text = "ts,gpu,temp_c,reasons,viol_thermal_ns\n10.0,0,70,0x0,0\n11.0,0,70,0x0,9000\n"

    (card,) = SavedReadings(text.splitlines(), "gpu.csv", UTC).between(0, 20)

    assert card.thermal_reasons == ("thermal",)


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "no column"), ("a,b\n1,2\n", "no column"), ("time_utc,gpu\n,\n", "no row")],
)
def test_a_file_that_holds_no_readings_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=rf"x\.csv: {says}"):
        SavedReadings(text.splitlines(), "x.csv", UTC)
