"""The profiles of this host, as the launch screen gets them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gpu_dash.cli.host_desk import HostDesk
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.errors import UsageError
from gpu_dash.server import profile_file
from gpu_dash.server.profile_file import load_profile, user_profiles_folder

OLD = """\
# a comment of its author
vllm_version = "0.33"
[server]
model = "a/b"
[server.flags]
swap-space = 8  # GiB
seed = 1
"""


def own(name: str, text: str) -> Path:
    path = user_profiles_folder() / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_the_list_has_the_packages_and_the_users_own_and_says_what_is_broken() -> None:
    own("mine", OLD)
    own("broken", "[server")

    choices = {choice.name: choice for choice in HostDesk().choices()}

    assert choices["mine"].own
    assert not choices["simulated"].own
    assert choices["simulated"].description
    assert "no valid TOML" in choices["broken"].problem


def test_a_profile_of_the_package_is_corrected_in_a_copy_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "old.toml").write_text(OLD)
    monkeypatch.setattr(profile_file, "package_profiles_folder", lambda: package)

    kept = HostDesk().keep_corrections("old")

    assert kept == user_profiles_folder() / "old.toml"
    assert kept.read_text() == OLD.replace("swap-space = 8  # GiB\n", "")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert (package / "old.toml").read_text() == OLD
    assert load_profile("old").server.flags == {"seed": 1}


def test_a_launch_begins_as_it_was_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    own("old", OLD)
    monkeypatch.setenv("GATEWAY_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("GATEWAY_API_KEY", "key-0123456789")
    desk = HostDesk()

    as_it_is = desk.begin("old", corrected=False, force=True)
    corrected = desk.begin("old", corrected=True, force=False)
    watched = desk.begin("gateway", corrected=False, force=False)

    assert isinstance(as_it_is, Launch)
    assert isinstance(corrected, Launch)
    assert isinstance(watched, Watch)
    assert (as_it_is.force, "swap-space" in as_it_is.profile.server.flags) == (True, True)
    assert (corrected.force, corrected.profile.server.flags) == (False, {"seed": 1})
    assert watched.base_url == "http://127.0.0.1:9"


def test_a_key_that_is_not_set_is_told_before_anything_begins() -> None:
    with pytest.raises(UsageError, match="GATEWAY_API_KEY is not set"):
        HostDesk().begin("gateway", corrected=False, force=False)


def test_the_checks_of_an_endpoint_come_through_the_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_BASE_URL", "http://127.0.0.1:9")

    checks = [check.check for check in HostDesk().examine("gateway")]

    assert checks[:2] == ["url", "key"]
    assert checks[-1] == "connect"
