"""The project as a stranger gets it: its profiles, its wheel, its texts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from gpu_dash.server.profile_file import read_profile
from scripts.bootstrap_pip import LOCK, locked_wheel
from scripts.profile_docs import PAGE, page

ROOT = Path(__file__).parents[2]
PROFILES = sorted(ROOT.glob("profiles/*.toml"))

OWN_FOLDER = re.compile(r"/(?:home|root|Users)/[\w.-]+[^\s\"'`)]*")
"""A path below somebody's home."""
PUBLISHED_BY_OTHERS = ROOT / "tests" / "data" / "launch"
"""Launch commands as their authors wrote them, whose folders are theirs."""
OF_THE_CONTAINER = "/root/.cache/huggingface"
"""Where vLLM's own image keeps models: the home is the container's."""


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_a_shipped_profile_is_one(path: Path) -> None:
    profile = read_profile(path)

    assert profile.name == path.stem
    assert profile.description
    assert profile.plan().ramp


def test_the_demo_profile_is_shipped() -> None:
    assert ROOT / "profiles" / "simulated.toml" in PROFILES


def test_the_wheel_holds_the_profiles_and_the_style_sheets(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=60,
    )
    (wheel,) = tmp_path.glob("gpu_dash-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {f"gpu_dash/profiles/{path.name}" for path in PROFILES} <= names
    sources = {
        str(path.relative_to(ROOT / "tui"))
        for path in (ROOT / "tui" / "gpu_dash").rglob("*")
        if path.suffix in {".py", ".tcss"}
    }
    assert sources <= names
    assert not any("tests" in name.split("/") for name in names)


def tracked_files() -> list[Path]:
    """The files that git keeps, as they are now.

    A checkout that belongs to somebody else is trusted for this one listing.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is no list of the project's own files")
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=30,
    )
    paths = [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_text_names_a_folder_of_the_machine_it_was_written_on() -> None:
    found = []
    for path in tracked_files():
        if path.is_relative_to(PUBLISHED_BY_OTHERS):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}: {match[0]}"
            for match in OWN_FOLDER.finditer(text)
            if not match[0].startswith(OF_THE_CONTAINER)
        ]
    assert not found


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("see ~home/ann/models, then", ["~home/ann/models,"]),
        ('"~Users/ann"', ["~Users/ann"]),
        ("the ~home/ partition, $HOME/models, ~/models, /srv/root/", []),
    ],
)
def test_what_counts_as_such_a_folder(text: str, named: list[str]) -> None:
    """``~`` stands for the slash, so that this file passes its own test."""
    found = [match[0] for match in OWN_FOLDER.finditer(text.replace("~", "/"))]
    assert found == [name.replace("~", "/") for name in named]


def test_the_lock_names_a_pip_for_a_python_that_has_none() -> None:
    url, sha256 = locked_wheel(tomllib.loads(LOCK.read_text(encoding="utf-8")))

    assert url.startswith("https://")
    assert url.endswith("-py3-none-any.whl")
    assert re.fullmatch("[0-9a-f]{64}", sha256)


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.md")), ids=lambda path: path.name)
def test_a_text_links_only_to_files_that_are_there(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (ROOT / link).is_file()]

    assert not missing


def test_the_page_of_the_profiles_fields_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m scripts.profile_docs"
