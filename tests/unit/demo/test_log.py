"""Lines in vLLM's form, and a reader that is gone."""

from __future__ import annotations

import os
import re
import sys

import pytest

from gpu_dash.demo.log import API_SERVER, ENGINE_CORE, Process, ServerLog, worker


@pytest.fixture
def log() -> ServerLog:
    log = ServerLog(api_server_pid=100)
    log.engine_core_started(200)
    return log


@pytest.mark.parametrize(
    ("process", "prefix"),
    [
        (API_SERVER, "(APIServer pid=100)"),
        (ENGINE_CORE, "(EngineCore pid=200)"),
        (Process("Worker", 1), "(Worker pid=202)"),
        (worker(0, 4), "(Worker_TP0 pid=201)"),
        (worker(3, 4), "(Worker_TP3 pid=204)"),
        (worker(0, 1), "(Worker pid=201)"),
    ],
)
def test_a_record_names_its_process(log: ServerLog, process: Process, prefix: str) -> None:
    text = log.format(process, "INFO", "core.py:1", "hello")
    assert re.fullmatch(
        re.escape(prefix) + r" INFO \d\d-\d\d \d\d:\d\d:\d\d \[core\.py:1\] hello", text
    )


def test_further_lines_of_a_record_carry_the_prefix_again(
    log: ServerLog, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    log.record(ENGINE_CORE, "ERROR", "core.py:1", "first", "second")
    first, second, end = capfdbinary.readouterr().out.split(b"\n")
    assert first.endswith(b"] first\r")
    assert second.endswith(b"] second")
    assert second.startswith(b"(EngineCore pid=200) ERROR ")
    assert end == b""


def test_a_progress_bar_overwrites_itself_and_ends_its_line_once(
    log: ServerLog, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    log.progress("50%", done=False)
    log.progress("100%", done=True)
    assert capfdbinary.readouterr().err == b"\r50%\r100%\n"


def test_a_reader_that_went_away_costs_only_the_lines(
    log: ServerLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as broken:
        monkeypatch.setattr(sys, "stdout", broken)
        log.raw("nobody reads this")
        log.raw("nor this")


def test_a_full_disk_costs_only_the_lines(log: ServerLog, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        log.raw("there is no room for this")
        log.raw("nor for this")
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, full.fileno())  # what is left in the buffer goes somewhere at the end
        os.close(null)
