"""Why a server ended, told from its exit code and its log."""

from __future__ import annotations

from functools import partial

import pytest

from gpu_dash.model.log import Severity
from gpu_dash.server.last_words import FIRST_ERROR, NO_ERROR, LastWords, describe_exit
from tests.unit.server import log_findings

found = partial(log_findings.found, severity=Severity.CRITICAL)


def test_a_cause_comes_before_what_followed_from_it() -> None:
    words = LastWords()
    words.take_finding(found(10, "follows", root=False))
    words.take_finding(found(20, "the cause"))

    assert words.of_end(0) == ("exit code 0: the cause", FIRST_ERROR)


def test_without_a_cause_the_first_error_that_only_reports_one_is_told() -> None:
    words = LastWords()
    words.take_finding(found(10, "the engine is gone", root=False))
    words.take_finding(found(11, "the engine is gone, says a request", root=False))
    words.take_line("a later line")

    assert words.of_end(0) == ("exit code 0: the engine is gone", NO_ERROR)


@pytest.mark.parametrize(
    "line",
    [
        "INFO:     Finished server process [7]",
        "(APIServer pid=1) WARNING 11-30 18:54:10 [model.py:1] Default parameters are overridden",
        "Capturing CUDA graphs (decode, FULL): 100%|█████| 51/51 [00:02<00:00, 20it/s]",
        "  warnings.warn('resource_tracker: There appear to be %d '",
    ],
)
def test_a_line_that_says_nothing_of_the_end_is_not_told(line: str) -> None:
    words = LastWords()
    words.take_line("python: No module named vllm")
    words.take_line(line)

    assert words.of_end(1)[0] == "exit code 1: python: No module named vllm"


def test_a_server_that_was_killed_did_not_say_why() -> None:
    words = LastWords()
    words.take_line("just a line")

    detail, first_check = words.of_end(-9)

    assert detail.startswith("ended by signal 9 (SIGKILL): something killed it; `dmesg`")
    assert "kernel log" in first_check


def test_a_server_that_somebody_else_stopped_was_asked() -> None:
    words = LastWords()
    words.take_line("(APIServer pid=5) INFO 11-30 [launcher.py:80] Shutting down FastAPI server.")

    assert words.of_end(0)[0] == "exit code 0: it was asked to stop, but not by gpu-dash"


def test_a_bus_error_is_shared_memory() -> None:
    assert "/dev/shm" in LastWords().of_end(-7)[0]


def test_a_start_that_we_gave_up_is_told_with_our_reason() -> None:
    words = LastWords()
    words.give_up("not ready after 60 s")
    assert words.of_end(-2)[0] == "ended by signal 2 (SIGINT): not ready after 60 s"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (1, "exit code 1"),
        (-9, "ended by signal 9 (SIGKILL)"),
        (-64, "ended by signal 64"),
        (None, "ended; its exit code is not known"),
    ],
)
def test_an_exit_code_in_words(code: int | None, says: str) -> None:
    assert describe_exit(code).startswith(says)
