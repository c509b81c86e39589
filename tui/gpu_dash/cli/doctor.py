"""``gpu-dash doctor``: what stands in the way on this host and at an endpoint."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator

import click
import msgspec

from gpu_dash.cli.options import print_json
from gpu_dash.doctor.check import Check, any_failed
from gpu_dash.doctor.examine import examine_endpoint
from gpu_dash.doctor.host import examine_host
from gpu_dash.doctor.profile import examine_profile
from gpu_dash.model.errors import UsageError
from gpu_dash.server.profile_file import load_profile

_SIGNS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}
_WIDTH = 100


@click.command("doctor")
@click.argument("profile", required=False)
@click.option("--base-url", metavar="URL", help="Check this endpoint, with or without /v1.")
@click.option("--model", metavar="ID", help="With --base-url; the first one listed if left out.")
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the key.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
def command(
    profile: str | None,
    base_url: str | None,
    model: str | None,
    api_key_env: str | None,
    as_json: bool,
) -> int:
    """Check this host, a PROFILE before its launch, or an endpoint."""
    if profile is not None and base_url is not None:
        raise UsageError("give a PROFILE or --base-url URL, one of the two")
    if base_url is None and (model or api_key_env):
        raise UsageError("--model and --api-key-env go with --base-url")
    checks: list[Check] = []
    for check in _checks(profile, base_url, model, api_key_env):
        checks.append(check)
        if not as_json:
            _show(check)
    if as_json:
        print_json(msgspec.to_builtins(checks))
    return 1 if any_failed(checks) else 0


def _checks(
    name: str | None, base_url: str | None, model: str | None, key_variable: str | None
) -> Iterator[Check]:
    if base_url is not None:
        key = None if key_variable is None else os.environ.get(key_variable)
        yield from examine_endpoint(base_url, model, key_variable, key)
    elif name is not None:
        yield from examine_profile(load_profile(name), os.environ, os.getcwd())
    else:
        yield from examine_host()


def _show(check: Check) -> None:
    click.echo(f"{_SIGNS[check.status]}  {check.check.ljust(11)} {check.detail}")
    if check.action is not None:
        indent = " " * 18
        wrapped = textwrap.fill(
            check.action, _WIDTH, initial_indent=f"{indent}→ ", subsequent_indent=f"{indent}  "
        )
        click.echo(wrapped)
