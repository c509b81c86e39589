"""The rules that every test lives by, tried on tests that break them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BREAKERS = """
import os, subprocess, sys
from pathlib import Path
import pytest
import tests.conftest

tests.conftest.END_TIMEOUT_S = 0.2

def sleeper(**options):
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], **options)

@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_leaves_a_child():
    sleeper()

def test_leaves_an_orphan():
    spawn = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", spawn], check=True)

def test_leaves_an_orphan_without_our_environment():
    log = os.environ["HOME"] + "/log"
    spawn = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True, env={{}}, stdout=open({log!r}, 'w'))"
    subprocess.run([sys.executable, "-c", spawn], check=True)

def test_cleans_up():
    with sleeper() as child:
        child.kill()

def test_is_skipped():
    pytest.skip("no such tool")

@pytest.mark.xfail(reason="known", strict=True)
def test_is_expected_to_fail():
    assert False

def test_has_a_home_of_its_own():
    home = Path(os.environ["HOME"])
    assert not list(home.iterdir())
    assert os.environ["XDG_STATE_HOME"].startswith(str(home))
    assert len(os.environ["XDG_STATE_HOME"]) < 60
    (home / "left").touch()

def test_has_another_home():
    assert not (Path(os.environ["HOME"]) / "left").exists()
"""  # noqa: E501


def outcomes_of(test_file: Path, **environment: str) -> dict[str, str]:
    """Run a test file under this project's conftest; outcome of each test by its name."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"),
            *("-rA", "--tb=no", "--rootdir", str(test_file.parent), str(test_file)),
        ],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        outcome, _, rest = line.partition(" ")
        if outcome in {"PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL"}:
            name = rest.partition("::")[2].partition(" ")[0] or rest
            if found.get(name) != "ERROR":
                found[name] = outcome
    return found


def test_breaking_a_rule_fails_the_test(tmp_path: Path) -> None:
    test_file = tmp_path / "test_breakers.py"
    test_file.write_text(BREAKERS)

    outcomes = outcomes_of(test_file, GPU_DASH_NO_SKIP="1")

    assert outcomes == {
        "test_leaves_a_child": "ERROR",
        "test_leaves_an_orphan": "ERROR",
        "test_leaves_an_orphan_without_our_environment": "ERROR",
        "test_cleans_up": "PASSED",
        "test_is_skipped": "FAILED",
        "test_is_expected_to_fail": "XFAIL",
        "test_has_a_home_of_its_own": "PASSED",
        "test_has_another_home": "PASSED",
    }


@pytest.mark.parametrize(("no_skip", "outcome"), [("1", "ERROR"), ("0", "SKIPPED")])
def test_a_module_may_skip_itself_only_where_skips_may_pass(
    tmp_path: Path, no_skip: str, outcome: str
) -> None:
    test_file = tmp_path / "test_module.py"
    test_file.write_text("import pytest\npytest.importorskip('no_such_module')\n")

    outcomes = outcomes_of(test_file, GPU_DASH_NO_SKIP=no_skip)

    assert list(outcomes.values()) == [outcome]
