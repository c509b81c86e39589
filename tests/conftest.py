"""What every test gets: a home of its own, no process left behind, and no silent skip."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.fakes.clock import ManualClock
from tests.processes import (
    HOME_VARIABLE,
    StartCounter,
    describe,
    processes_of,
    wait_until_gone,
)

NO_SKIP = os.environ.get("GPU_DASH_NO_SKIP") == "1"
"""Set where a skip would hide a missing install step: there, a skip is a failure."""

END_TIMEOUT_S = 3.0
"""How long a test's processes may take to end after the test."""

_FOREIGN_VARIABLES = (
    "COLORTERM",
    "CUDA_VISIBLE_DEVICES",
    "HF_TOKEN",
    "NO_COLOR",
    "SSH_CONNECTION",
    "VLLM_API_KEY",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    *(
        spelling
        for name in ("all_proxy", "http_proxy", "https_proxy", "no_proxy")
        for spelling in (name, name.upper())
    ),
)
"""Variables of the person who runs the tests that would change what a test sees."""

_started = StartCounter()


# -- fixtures ----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def private_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home, state and configuration folder of the test's own, for it and what it starts.

    The path is short, because the path of a unix socket must fit into 107 bytes.
    """
    home = Path(tempfile.mkdtemp(prefix="gd-", dir="/tmp"))
    for variable in _FOREIGN_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    yield home
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(autouse=True)
def no_process_left(private_home: Path) -> Iterator[None]:
    """Fail a test that leaves a process behind, and end that process.

    Found are the children of the test run and what :func:`~tests.processes.processes_of` knows
    by the test's private home, in a session of its own or not.
    """
    started_before = _started.count
    children_before = psutil.Process().children()
    yield
    if _started.count == started_before:
        return
    children = [child for child in psutil.Process().children() if child not in children_before]
    suspects = list({*children, *processes_of(private_home)})
    left = wait_until_gone(suspects, END_TIMEOUT_S)
    names = [describe(process) for process in left]
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    if names:
        pytest.fail(f"left running {END_TIMEOUT_S:g} s after the test: {'; '.join(names)}")


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still until the test moves it."""
    return ManualClock()


# -- no silent skips ---------------------------------------------------------------------------


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure where everything must run; an expected failure is no skip."""
    if NO_SKIP and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: no skip may pass with GPU_DASH_NO_SKIP=1: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skipped test."""
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that skips itself as a whole."""
    report = yield
    _fail_if_skipped(report)
    return report
