"""``gpu-dash doctor``: what stands in the way on this host and at an endpoint."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator

import click
import msgspec

from gpu_dash.cli.options import print_json
from gpu_dash.doctor.check import Check, any_failed, fail, ok, warn
from gpu_dash.doctor.examine import examine_endpoint
from gpu_dash.doctor.host import examine_host
from gpu_dash.model.errors import PreflightError, UsageError
from gpu_dash.model.profile import Profile
from gpu_dash.server.command_line import parallel_of
from gpu_dash.server.flags.check import check_launch
from gpu_dash.server.flags.history import NEWEST, parse_release, show
from gpu_dash.server.preflight import check_launch as check_preflight
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
        yield from _endpoint(base_url, model, key_variable)
        return
    if name is None:
        yield from examine_host()
        return
    profile = load_profile(name)
    target = profile.target
    if target is None:
        yield from _launch(profile)
        yield from examine_host(profile.gpu.source, _gpus_needed(profile))
        return
    url = os.environ.get(target.base_url_env or "") or target.base_url
    wanted = os.environ.get(target.model_env or "") or target.model
    yield from _endpoint(url, wanted, target.api_key_env)


def _endpoint(url: str, model: str | None, key_variable: str | None) -> Iterator[Check]:
    key = None if key_variable is None else os.environ.get(key_variable)
    yield from examine_endpoint(url, model, key_variable, key)


def _launch(profile: Profile) -> Iterator[Check]:
    """What is known of a launch before it."""
    try:
        check_preflight(profile, os.environ, os.getcwd())
    except PreflightError as error:
        yield fail("launch", str(error), "see the message; --force launches all the same")
    else:
        yield ok("launch", "program, model path and port are as they should be")
    if profile.server.command[0] == "{python}":
        return
    release = NEWEST if profile.vllm_version is None else parse_release(profile.vllm_version)
    checked = check_launch(dict(profile.server.flags), tuple(profile.server.env), release)
    for one in checked.corrections:
        yield fail("flags", one.detail, f"gpu-dash profiles check {profile.name}")
    for warning in checked.warnings:
        yield warn("flags", warning, "make sure that the server is that fork")
    if not checked.corrections:
        yield ok("flags", f"vLLM {show(release)} knows every flag and variable")


def _gpus_needed(profile: Profile) -> int:
    return 1 if profile.gpu.source in ("sim", "none") else parallel_of(profile).world


def _show(check: Check) -> None:
    click.echo(f"{_SIGNS[check.status]}  {check.check.ljust(11)} {check.detail}")
    if check.action is not None:
        indent = " " * 18
        wrapped = textwrap.fill(
            check.action, _WIDTH, initial_indent=f"{indent}→ ", subsequent_indent=f"{indent}  "
        )
        click.echo(wrapped)
