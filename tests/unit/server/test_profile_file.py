"""Profiles: what is found, what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_dash.model.errors import UsageError
from gpu_dash.server.profile_file import load_profile, profile_files, user_profiles_folder


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


GOOD = '[server]\nmodel = "acme/tiny"\n'


def test_a_file_gives_a_profile_named_after_it(tmp_path: Path) -> None:
    profile = load_profile(str(write(tmp_path / "mine.toml", GOOD)))
    assert (profile.name, profile.server.model, profile.server.port) == ("mine", "acme/tiny", 8000)


def test_the_users_profile_hides_the_packages_of_that_name() -> None:
    write(user_profiles_folder() / "simulated.toml", GOOD)
    assert load_profile("simulated").server.model == "acme/tiny"


def test_the_package_ships_the_profile_of_the_demo() -> None:
    assert "simulated" in {path.stem for path in profile_files()}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[server\n", "no valid TOML"),
        ("description = 'x'\n", "`server.model`: '' names no model, and there is no [target]"),
        ("[server]\nmodel = 3\n", "`server.model`: expected `str`, got `int`"),
        (GOOD + "port = 'x'\n", "`server.port`: expected `int`, got `str`"),
        (GOOD + "port = 70000\n", "`server.port`: 70000 is not a port"),
        (GOOD + "prot = 1\n", "unknown field `prot`"),
        (GOOD + "kind = 'external'\n", "`server.kind`"),
        (GOOD + "kind = 'container'\n", "`server.image`"),
        (GOOD + "command = []\n", "`server.command`"),
        (GOOD + "ready_timeout = '5'\n", "`server.ready_timeout`: '5' is not a duration"),
        (GOOD + "[server.flags]\n'--tp' = 2\n", "write it without the dashes"),
        (GOOD + "[server.env]\n'A B' = 'x'\n", "is not an environment variable"),
        (GOOD + "[load]\nramp = [4, 0]\n", "`load.ramp`"),
        (GOOD + "[load]\nramp = [99999999999999]\n", "`load.ramp`"),
        (GOOD + "[load]\nstep = '0s'\n", "`load.step`: '0s' is too short"),
        (GOOD + "[load]\ntimeout = '0ms'\n", "`load.timeout`: '0ms' is too short"),
        ('[server]\nmodel = "a\\u0000b"\n', "holds a null character"),
        (GOOD + "[load]\noutput_tokens = 0\n", "`load.output_tokens`"),
        (GOOD + "[gpu]\nsource = 'cuda'\n", "`gpu.source`: 'cuda' is none of"),
        (GOOD + "[target]\nbase_url = 'http://h'\n", "`target`"),
        ("[target]\nbase_url = 'h:1'\n", "`target.base_url`: 'h:1' is not the URL"),
        ("vllm_version = '2.0'\n" + GOOD, "`vllm_version`: vLLM 2.0"),
        ("name = 'x'\n" + GOOD, "`name` is the file's own name"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_field(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path / "bad.toml", text)
    with pytest.raises(UsageError) as refused:
        load_profile(str(path))
    assert words in str(refused.value)
    assert "'bad'" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="did you mean simulated"):
        load_profile("simulatd")


def test_a_name_far_from_all_gets_the_list() -> None:
    with pytest.raises(UsageError, match=r"there are: .*simulated"):
        load_profile("zzz")


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_profile(str(tmp_path / "none.toml"))


def test_a_folder_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a file"):
        load_profile(f"{tmp_path}/")


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "open.toml", GOOD, mode=0o666)
    with pytest.raises(UsageError, match="chmod go-w"):
        load_profile(str(path))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'[server]\nmodel = "\xe9"\n')
    path.chmod(0o600)
    with pytest.raises(UsageError, match="not UTF-8"):
        load_profile(str(path))
