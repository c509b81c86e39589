"""Arguments as people write them."""

from __future__ import annotations

import click
import pytest

from gpu_dash.cli.group import cli, command_names
from gpu_dash.cli.options import Duration, Ramp, SloLimits, api_key_from
from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import Slo


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Duration(), "500ms", 0.5),
        (Duration(), "2m", 120.0),
        (Ramp(), "1,4, 8", (1, 4, 8)),
        (SloLimits(), "ttft=500ms,tpot=30ms", Slo(ttft_s=0.5, tpot_s=0.03)),
        (SloLimits(), "e2e=20s", Slo(e2e_s=20.0)),
    ],
)
def test_what_is_written_is_what_is_meant(
    kind: click.ParamType[object], text: str, value: object
) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Duration(), "5"),
        (Duration(), "-5s"),
        (Duration(), "five s"),
        (Ramp(), ""),
        (Ramp(), "0"),
        (Ramp(), "1,,2"),
        (Ramp(), "1;2"),
        (SloLimits(), "ttfb=1s"),
        (SloLimits(), "ttft"),
        (SloLimits(), "ttft=1"),
    ],
)
def test_what_is_none_is_refused(kind: click.ParamType[object], text: str) -> None:
    with pytest.raises(click.BadParameter):
        kind.convert(text, None, None)


def test_the_key_comes_from_the_variable_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    assert api_key_from("MY_KEY") == "s3cret"
    assert api_key_from(None) is None
    monkeypatch.setenv("MY_KEY", "")
    with pytest.raises(UsageError, match="MY_KEY is not set") as refused:
        api_key_from("MY_KEY")
    assert "s3cret" not in str(refused.value)


def test_every_command_of_the_list_exists_and_has_a_help() -> None:
    context = click.Context(cli)
    for name in command_names():
        command = cli.get_command(context, name)
        assert command is not None, name
        assert command.get_short_help_str(), name


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["my-profile"], "dashboard"),
        (["./my.toml"], "dashboard"),
        ([], "dashboard"),
        (["--base-url", "http://h"], "dashboard"),
        (["run", "my-profile"], "run"),
    ],
)
def test_a_first_word_that_is_no_command_is_a_profile(arguments: list[str], command: str) -> None:
    context = click.Context(cli)
    rest = cli.parse_args(context, list(arguments))
    name, _, _ = cli.resolve_command(context, [command, *rest])
    assert name == command
    assert rest == [word for word in arguments if word != command]
