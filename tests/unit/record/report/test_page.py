"""The page as a browser would read it, for sessions of every kind."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import GpuInfo, GpuSample, GpuSourceState, ThrottleKind
from gpu_dash.model.load import LoadPlan, Outcome, RequestRecord, StepResult
from gpu_dash.model.log import Severity
from gpu_dash.record.reader import SessionReader
from gpu_dash.record.report.page import report_page
from tests.unit.record.recorded import on, record, session_events

REFERENCE = Path(__file__).parents[3] / "data" / "h200-tp2"
VOID = {"meta"}
HOSTILE = "</title></style><script>alert(1)</script>\x1b[31m\"'><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """The page's tags, attributes and text; fails where a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.words)


def page_of(folder: Path) -> Page:
    return Page(report_page(SessionReader(folder)))


def recorded_page(folder: Path, events: list[ev.Event], **fields: Any) -> Page:
    record(folder, events, **fields)
    return page_of(folder)


def cells(page: Page, first: str) -> list[str]:
    """The words of the table row that begins with this one."""
    place = page.words.index(first)
    return page.words[place : place + 11]


def test_the_reference_has_all_parts() -> None:
    page = page_of(REFERENCE)
    for words in (
        "reference",
        "2 × NVIDIA H200 (gpu 0, 1)",
        "qwen3-32b-tp2",
        "best: 3908 tok/s at 128",
        "knee 128",
        "waiting",
        "slowdown 89 °C",
        "limit 700 W",
        "maximum 1980 MHz",
        "3,907.6",
        "2:40",
        "gpu.csv",
    ):
        assert words in page.text, words
    assert page.tags.count("svg") == 3
    assert "--tensor-parallel-size 2" in page.text


def test_nothing_is_fetched_and_nothing_runs() -> None:
    page = page_of(REFERENCE)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(page.tags)
    names = {name for name, _ in page.attributes}
    assert not {"src", "href", "xlink:href", "style"} & names
    assert not any(name.startswith("on") for name in names)
    assert "url(" not in page.text
    assert "@import" not in page.text


def test_text_from_outside_stays_text(tmp_path: Path) -> None:
    events = session_events()
    events.append(
        ev.Finding(
            at=on(32.0),
            kind=HOSTILE,
            severity=Severity.CRITICAL,
            source=HOSTILE,
            subject=HOSTILE,
            message=HOSTILE,
            first_check=HOSTILE,
        )
    )
    card = GpuInfo(gpu=0, name=HOSTILE, uuid=HOSTILE)
    events.append(
        ev.GpuSourceChanged(at=on(1.0), source="sim", state=GpuSourceState.LIVE, gpus=(card,))
    )
    names = ("label", "profile", "model", "base_url", "vllm_version", "gpu_dash_version")
    page = recorded_page(
        tmp_path,
        events,
        **dict.fromkeys(names, HOSTILE),
        argv=(HOSTILE, "--api-key", "sk-secret", "-e", "HF_TOKEN=hf_secret"),
        environment_names=(HOSTILE,),
        plan=LoadPlan(dataset=f"/{HOSTILE}"),
    )
    assert not {"script", "img"} & set(page.tags)
    assert "<script>alert(1)</script>" in page.text
    assert not any(name.startswith("on") for name, _ in page.attributes)
    for hidden in ("\x1b", "sk-secret", "hf_secret"):
        assert hidden not in page.text


def test_a_key_in_a_recording_of_another_hand_is_not_shown(tmp_path: Path) -> None:
    record(tmp_path, [])
    meta = tmp_path / "session.toml"
    lines = 'base_url = "http://me:sk-one@host"\nargv = ["vllm", "--api-key", "sk-two"]\n'
    meta.write_text(lines + meta.read_text())
    text = page_of(tmp_path).text
    assert "http://***@host" in text
    assert "sk-one" not in text
    assert "sk-two" not in text


def test_a_throttle_has_its_cost_and_its_first_check(tmp_path: Path) -> None:
    page = recorded_page(tmp_path, session_events())
    row = cells(page, "hw_thermal")
    assert row[1:5] == ["0:30", "4.0 s", "90 °C", "1,200 MHz"]
    assert row[5] == "4"
    assert row[8].endswith(" %")
    assert "air flow" in row[9]


def test_each_card_has_its_missing_clock_in_each_step(tmp_path: Path) -> None:
    page = recorded_page(tmp_path, session_events())
    place = page.words.index("Cards by step")
    assert page.words[place + 1 : place + 7] == ["Card", "at 1", "at 4", "0", "0.0 %", "0.0 %"]
    assert page.words[place + 7 : place + 9] == ["1", "0.0 %"]
    assert page.words[place + 9].endswith(" s hot")


def test_an_error_has_the_same_number_in_the_charts_and_in_the_table(tmp_path: Path) -> None:
    page = recorded_page(tmp_path, session_events())
    assert ("class", "flag") in page.attributes
    flags = [value for name, value in page.attributes if (name, value) == ("class", "flag-head")]
    assert len(flags) == 1
    place = page.words.index("nccl timeout")
    assert page.words[place - 3 : place] == ["1", "0:31", "critical"]


def test_a_session_that_goes_on_is_told_as_far_as_it_is(tmp_path: Path) -> None:
    events = [event for event in session_events() if event.at < on(35.0)]
    page = recorded_page(tmp_path, events)
    assert "not yet: it goes on, or its agent was killed" in page.text
    assert "There is none: the session goes on" in page.text
    assert "Requests that were still open are not in the curves" in page.text
    assert "not over" in page.text


def test_a_killed_recorder_leaves_a_report(tmp_path: Path) -> None:
    record(tmp_path, session_events())
    for file in tmp_path.glob("*.csv"):
        data = file.read_bytes()
        file.write_bytes(data[: len(data) - 11])
    text = page_of(tmp_path).text
    assert "Over time" in text


@pytest.mark.parametrize(
    "name", ["session.toml", "gpu.csv", "requests.csv", "steps.csv", "server.csv", "events.csv"]
)
def test_any_file_may_be_missing(tmp_path: Path, name: str) -> None:
    for file in REFERENCE.iterdir():
        if file.name != name:
            shutil.copy(file, tmp_path)
    assert "Over time" in page_of(tmp_path).text


def test_without_cards_and_steps_there_are_no_empty_tables(tmp_path: Path) -> None:
    page = recorded_page(tmp_path, [])
    assert "none were read" in page.text
    assert page.tags.count("h2") == 3  # the verdict, the charts, where the recording is
    assert not any("nan" in (value or "") for _, value in page.attributes)


def open_loop() -> list[ev.Event]:
    events: list[ev.Event] = []
    for step, rate in ((1, 2.5), (2, 5.0)):
        opens = 10.0 * step
        result = StepResult(
            step=step,
            concurrency=None,
            request_rate=rate,
            time_s=opens,
            duration_s=9.0,
            elapsed_s=9.5,
            output_tokens_per_s=100.0 * rate,
            requests_ok=3,
            client_bound=step == 2,
        )
        asked = ev.StepBegan(
            at=on(opens), step=step, concurrency=0, request_rate=rate, first_sent_at=on(opens)
        )
        events += [asked, ev.StepEnded(at=on(opens + 9.5), result=result)]
    return events


def test_an_open_loop_is_told_by_its_rate(tmp_path: Path) -> None:
    page = recorded_page(tmp_path, open_loop(), plan=LoadPlan(rates=(2.5, 5.0)))
    for words in ("2.5/s", "5/s", "requests per second", "client-bound"):
        assert words in page.words, words
    assert "planned 2.5, 5 requests/s" in page.text
    assert ("class", "point hollow c0") in page.attributes


def failures() -> list[ev.Event]:
    requests = tuple(
        RequestRecord(
            request=number,
            step=1,
            concurrency=1,
            scheduled=on(5.0),
            sent=on(5.0),
            outcome=Outcome.REFUSED,
        )
        for number in range(3)
    )
    return [ev.RequestsEnded(at=on(5.5), requests=requests)]


def test_failed_requests_are_marked_where_they_failed(tmp_path: Path) -> None:
    page = recorded_page(tmp_path, [*open_loop(), *failures()])
    assert "3 failed" in page.words


def many_cards(count: int, seconds: int) -> list[ev.Event]:
    """Cards of which number 11 gets hottest and throttles by the second."""
    cards = tuple(
        GpuInfo(gpu=gpu, name="Acme T100", slowdown_temperature_celsius=89.0)
        for gpu in range(count)
    )
    events: list[ev.Event] = [
        ev.GpuSourceChanged(at=on(0.0), source="sim", state=GpuSourceState.LIVE, gpus=cards)
    ]
    for second in range(seconds):
        samples = tuple(
            GpuSample(
                gpu=gpu,
                temperature_celsius=95.0 if (gpu, second) == (11, seconds // 2) else 50.0 + gpu,
                power_watts=300.0 + (second * 7 + gpu) % 90,
                sm_clock_mhz=1500.0 + (second * 13 + gpu) % 300,
                throttle_thermal_s=second / 2 if gpu == 11 else 0.0,
            )
            for gpu in range(count)
        )
        events.append(ev.GpuSamples(at=on(second + 0.25), samples=samples))
        if second % 2:
            hot = ThrottleKind.THERMAL
            began = ev.ThrottleBegan(at=on(second), gpu=11, kind=hot, reasons=("hw_thermal",))
            ended = ev.ThrottleEnded(at=on(second + 0.5), gpu=11, kind=hot, began_at=on(second))
            events += [began, ended]
    return events


def test_of_sixteen_cards_those_that_stand_out_have_a_line(tmp_path: Path) -> None:
    page = recorded_page(tmp_path, many_cards(16, 60))
    assert page.words.count("all 16 cards") == 3
    assert page.words.count("gpu 11") == 3
    assert "gpu 3" not in page.words
    assert page.words.count("throttle 15") == 1


def test_a_long_session_gives_no_longer_report(tmp_path: Path) -> None:
    sizes = []
    for seconds in (600, 1800):
        folder = tmp_path / f"{seconds}"
        folder.mkdir()
        record(folder, many_cards(12, seconds))
        text = report_page(SessionReader(folder))
        assert "95 °C" in text  # the one second in which it was that hot
        sizes.append(len(text))
    assert sizes[1] < sizes[0] * 1.1


def test_many_findings_and_steps_are_cut_with_a_word(tmp_path: Path) -> None:
    events: list[ev.Event] = [
        ev.Finding(
            at=on(number / 100),
            kind="traceback",
            severity=Severity.ERROR,
            source="log",
            message=f"error {number}",
        )
        for number in range(1500)
    ]
    (result, *_) = [event.result for event in open_loop() if isinstance(event, ev.StepEnded)]
    events += [
        ev.StepEnded(
            at=on(20.0 + step),
            result=msgspec.structs.replace(result, step=step, time_s=20.0 + step),
        )
        for step in range(300)
    ]
    page = recorded_page(tmp_path, events)
    assert "and 1,400 more in events.csv" in page.words
    assert "and 100 more in steps.csv" in page.words
    flags = [value for name, value in page.attributes if (name, value) == ("class", "flag")]
    assert len(flags) <= 40


def test_steps_too_short_to_be_told_apart_are_one_band(tmp_path: Path) -> None:
    (result, *_) = [event.result for event in open_loop() if isinstance(event, ev.StepEnded)]
    events: list[ev.Event] = [
        ev.StepEnded(
            at=on(10.0 * step + 10.0),
            result=msgspec.structs.replace(result, step=step, time_s=10.0 * step),
        )
        for step in range(2000)
    ]
    page = recorded_page(tmp_path, events)
    bands = [value for name, value in page.attributes if name == "class" and value]
    assert len([style for style in bands if style.startswith("step ") or style == "step"]) < 480


def test_absurd_times_do_not_hold_it(tmp_path: Path) -> None:
    """A file of another hand may say anything."""
    shutil.copytree(REFERENCE, tmp_path, dirs_exist_ok=True)
    for name, column in (
        ("requests.csv", "time_s"),
        ("requests.csv", "e2e_s"),
        ("requests.csv", "ttft_s"),
        ("steps.csv", "duration_s"),
        ("gpu.csv", "time_s"),
        ("events.csv", "time_s"),
    ):
        header, *rows = (tmp_path / name).read_text().splitlines()
        place = header.split(",").index(column)
        for value in ("1e300", "-1e300", "nan", ""):
            cells = rows[-1].split(",")
            cells[place] = value
            rows.insert(0, ",".join(cells))
        rows.append(rows[3])
        (tmp_path / name).write_text("\n".join([header, *rows]) + "\n")
    assert "Over time" in page_of(tmp_path).text
