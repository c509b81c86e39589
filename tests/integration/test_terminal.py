"""The dashboard in a real pseudo-terminal: how it is left, and what goes on without it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.commands import gpu_dash, is_running, status, wait_for, write_profile
from tests.integration.terminal import Terminal

LEAVES_ALTERNATE_SCREEN = b"\x1b[?1049l"
SHOWS_CURSOR = b"\x1b[?25h"


@pytest.fixture
def profile(tmp_path: Path) -> Iterator[str]:
    """A profile whose server is stopped at the end of the test."""
    yield str(write_profile(tmp_path))
    done = gpu_dash("stop", "--all")
    assert done.returncode == 0, done.stderr


def assert_restored(terminal: Terminal) -> None:
    """The terminal is as it was before the dashboard."""
    assert terminal.output.rfind(LEAVES_ALTERNATE_SCREEN) >= 0
    assert terminal.output.rfind(SHOWS_CURSOR) > 0
    after = terminal.attributes()
    assert after[3] & termios.ECHO
    assert after[3] & termios.ICANON
    for mode in (1000, 1002, 1003, 1006):
        on, off = f"\x1b[?{mode}h".encode(), f"\x1b[?{mode}l".encode()
        assert terminal.output.rfind(off) >= terminal.output.rfind(on)


def test_q_leaves_at_once_and_says_what_goes_on(profile: str) -> None:
    with Terminal("gpu-dash", profile) as terminal:
        terminal.wait_for_text("READY")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert_restored(terminal)
        assert "goes on (ready)" in terminal.after_the_screen()
    assert [row["server"]["state"] for row in status()] == ["ready"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_restores_the_terminal_and_leaves_the_ramp_alone(
    profile: str, number: signal.Signals
) -> None:
    with Terminal("gpu-dash", profile) as terminal:
        terminal.wait_for_text("READY")
        terminal.press("+")
        terminal.wait_for_text("1 concurrent")
        os.kill(terminal.pid, number)
        assert terminal.wait_for_end() == 128 + number
        assert_restored(terminal)
    (row,) = status()
    assert (row["server"]["state"], row["load"]["concurrency"]) == ("ready", 1)
    requests = Path(row["folder"]) / "requests.csv"
    size = requests.stat().st_size
    wait_for(lambda: requests.stat().st_size > size, "more requests after the dashboard's end")


@pytest.mark.parametrize("stopped", [False, True])
def test_a_continued_dashboard_draws_anew_and_still_leaves(stopped: bool) -> None:
    with Terminal("gpu-dash", "demo") as terminal:
        terminal.wait_for_text("READY")
        if stopped:
            os.kill(terminal.pid, signal.SIGSTOP)
        terminal.give_to_a_shell()
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.wait_for_text("READY")
        assert not terminal.attributes()[3] & termios.ICANON
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def test_kill_9_of_the_dashboard_and_a_lost_terminal_leave_the_ramp_alone(profile: str) -> None:
    with Terminal("gpu-dash", profile) as terminal:
        terminal.wait_for_text("READY")
        terminal.press("+")
        terminal.wait_for_text("1 concurrent")
        os.kill(terminal.pid, signal.SIGKILL)
        assert terminal.wait_for_end() == -signal.SIGKILL
    with Terminal("gpu-dash") as again:
        again.wait_for_text("1 concurrent")
        again.hang_up()
        again.wait_for_end()
    (row,) = status()
    assert (row["server"]["state"], row["load"]["concurrency"]) == ("ready", 1)


def test_a_terminal_that_is_too_small_says_so_and_recovers(profile: str) -> None:
    with Terminal("gpu-dash", profile, size=(80, 24)) as terminal:
        terminal.wait_for_text("READY")
        terminal.resize(20, 5)
        terminal.wait_for_text("60x16")
        terminal.resize(160, 48)
        terminal.wait_for_text("READY")
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def test_a_second_terminal_watches_and_can_take_the_controls(profile: str) -> None:
    with Terminal("gpu-dash", profile) as first:
        first.wait_for_text("READY")
        with Terminal("gpu-dash", "attach") as second:
            second.wait_for_text("READY")
            second.press("+")
            second.wait_for_text("c")
            second.press("c")
            second.wait_for_text("0→1")
            second.press("+")
            second.wait_for_text("1 concurrent")
            first.wait_for_text("1 concurrent")
            second.press("q")
            assert second.wait_for_end() == 0
        first.press("q")
        assert first.wait_for_end() == 0


def test_the_demo_ends_with_its_screen() -> None:
    with Terminal("gpu-dash", "demo", size=(80, 24)) as terminal:
        terminal.wait_for_text("READY")
        terminal.wait_for_text("ramp step 1")
        (row,) = status()
        server = row["server"]["pid"]
        assert row["agent"].startswith("demo-")
        assert is_running(server)
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert_restored(terminal)
    assert status() == []
    assert not is_running(server)


def test_kill_9_of_the_demo_ends_everything_too() -> None:
    with Terminal("gpu-dash", "demo", size=(80, 24)) as terminal:
        terminal.wait_for_text("READY")
        (row,) = status()
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.wait_for_end()
        wait_for(lambda: not is_running(row["server"]["pid"]), "the end of the demo's server")
        wait_for(lambda: status() == [], "the end of the demo's agent")


def test_a_recorded_session_is_played(tmp_path: Path) -> None:
    recording = Path(__file__).parents[1] / "data" / "h200-tp2"
    with Terminal("gpu-dash", "replay", str(recording), size=(160, 48)) as terminal:
        terminal.wait_for_text("NVIDIA H200")
        terminal.press("\x1b[F")
        terminal.wait_for_text("STOPPED")
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def test_without_a_terminal_it_is_one_line() -> None:
    for arguments in (("demo",), ("replay", "last")):
        done = gpu_dash(*arguments)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1


def test_the_first_screen_comes_fast() -> None:
    """Not a timed test: a start that takes ten seconds is broken on any machine."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpu_dash", "status"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert time.monotonic() - started < 10
    assert "textual" not in done.stderr
