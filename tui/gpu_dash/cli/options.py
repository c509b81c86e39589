"""Kinds of arguments that several commands share."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import click

from gpu_dash.model.duration import parse_duration
from gpu_dash.model.errors import UsageError
from gpu_dash.model.headers import Headers, parse_header, resolve_headers
from gpu_dash.model.load import Slo
from gpu_dash.model.slo import parse_slo
from gpu_dash.model.token_spread import TokenSpread, checked_tokens, parse_token_spread


class Duration(click.ParamType[float]):
    """``5s``, ``500ms``, ``2m`` → seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        try:
            return parse_duration(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


class Interval(Duration):
    """A duration, or a plain number of seconds as ``watch -n`` takes it."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value):
            value += "s"
        return super().convert(value, param, ctx)


class Ramp(click.ParamType[tuple[int, ...]]):
    """``1,4,8`` → concurrencies."""

    name = "ramp"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            steps = tuple(int(step) for step in value.split(","))
        except ValueError:
            steps = ()
        if not steps or min(steps) < 1:
            self.fail(f"{value!r} is not a ramp; write numbers from 1 up: 1,4,8,16", param, ctx)
        return steps


class Rates(click.ParamType[tuple[float, ...]]):
    """``2,4,8.5`` → requests per second."""

    name = "rates"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            rates = tuple(float(rate) for rate in value.split(","))
        except ValueError:
            rates = ()
        if not rates or not all(0 < rate < math.inf for rate in rates):
            self.fail(f"{value!r}: write requests per second, above 0: 2,4,8.5", param, ctx)
        return rates


class JsonObject(click.ParamType[dict[str, Any]]):
    """``{"top_k": 1}`` → a dict."""

    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError as error:
                self.fail(f"{value!r}: {error}", param, ctx)
        if not isinstance(value, dict):
            self.fail(f"{value!r} is no JSON object; write '{{\"top_k\": 1}}'", param, ctx)
        return value


class SloLimits(click.ParamType[Slo]):
    """``ttft=500ms,tpot=30ms`` → limits that a request must keep."""

    name = "slo"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Slo:
        if isinstance(value, Slo):
            return value
        try:
            return parse_slo(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


header_option = click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Of each request; $VARIABLE as value for a secret. Repeatable.",
)


def headers_of(
    written: Mapping[str, str], given: Iterable[str], *, has_key: bool = False
) -> Headers:
    """The headers of a profile with those of the command line.

    Args:
        written: those of the profile.
        given: as ``--header`` takes them.
        has_key: requests carry a key.

    Raises:
        UsageError: one of them cannot be sent.
    """
    pairs = [*written.items(), *map(parse_header, given)]
    return resolve_headers(pairs, os.environ, has_key=has_key)


class TokenCount(click.ParamType[int | TokenSpread]):
    """``256``, or a distribution such as ``normal:200,50``."""

    name = "tokens"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | TokenSpread:
        if not isinstance(value, str):
            return cast("int | TokenSpread", value)
        try:
            if value.strip().isdecimal():
                return checked_tokens(int(value))
            return parse_token_spread(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


def api_key_from(variable: str | None) -> str | None:
    """The key that an environment variable holds.

    Raises:
        UsageError: the variable is named and not set.
    """
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise UsageError(f"--api-key-env: the variable {variable} is not set; export it first")
    return key


def existing_log(path: str | None) -> str | None:
    """The absolute path of a log to follow.

    Raises:
        UsageError: there is no such file.
    """
    if path is None:
        return None
    if not Path(path).is_file():
        raise UsageError(f"--log: {path} is no file; name the log that the server writes")
    return str(Path(path).absolute())


def print_json(value: Any) -> None:
    """One JSON value on stdout, a line of its own, at once."""
    click.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def client_environment() -> dict[str, str]:
    """What a launch is given of the person's environment: all but what is the terminal's own."""
    of_terminal = {"TERM", "COLORTERM", "COLUMNS", "LINES", "TMUX", "TMUX_PANE", "STY"}
    return {name: value for name, value in os.environ.items() if name not in of_terminal}
