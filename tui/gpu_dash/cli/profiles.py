"""``gpu-dash profiles``: what there is, what is wrong with it, and new ones from a paste."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import click

from gpu_dash.cli.host_desk import HostDesk
from gpu_dash.cli.options import print_json
from gpu_dash.doctor.compose import as_written
from gpu_dash.doctor.gfx import override_words
from gpu_dash.doctor.profile import starts_vllm
from gpu_dash.model.errors import UsageError
from gpu_dash.model.profile import Profile
from gpu_dash.model.text import one_line, strip_controls
from gpu_dash.server.command_line import command_line, flag_arguments
from gpu_dash.server.flags.check import CheckedLaunch, check_launch
from gpu_dash.server.flags.correct import correct_profile, release_of
from gpu_dash.server.flags.history import NEWEST, Release, parse_release, show
from gpu_dash.server.flags.installed import ask_installed
from gpu_dash.server.paste.profile_text import profile_text
from gpu_dash.server.paste.text import ImportedLaunch, import_text
from gpu_dash.server.profile_edit import keep_corrected
from gpu_dash.server.profile_file import (
    find_profile,
    load_profile,
    user_profiles_folder,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@click.group("profiles")
def command() -> None:
    """List, show, check and make launch profiles."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
def list_profiles(as_json: bool) -> None:
    """Every profile there is; the user's own hides the package's of that name."""
    choices = HostDesk().choices()
    if as_json:
        print_json(
            [
                {
                    "name": one.name,
                    "description": one.description,
                    "own": one.own,
                    "problem": one.problem or None,
                }
                for one in choices
            ]
        )
        return
    width = max((len(one.name) for one in choices), default=0)
    for one in choices:
        mark = "*" if one.own else " "
        text = f"BROKEN: {one.problem}" if one.problem else one.description
        click.echo(f"{mark} {one.name.ljust(width)}  {strip_controls(text)}")
    if any(one.own for one in choices):
        click.echo(f"* in {user_profiles_folder()}")


@command.command("show")
@click.argument("name")
def show_profile(name: str) -> None:
    """What a profile starts or asks, and the band that it is known to reach."""
    profile = load_profile(name)
    click.echo(f"{profile.name}: {strip_controls(profile.description)}")
    for label, text in _facts(profile):
        click.echo(f"  {label.ljust(10)} {strip_controls(text)}")


@command.command("check")
@click.argument("name")
@click.option("--vllm-version", metavar="X.Y", help="Compare with this one, not the profile's.")
@click.option("--installed", is_flag=True, help="Ask the vllm that the profile would start.")
@click.option("--write", is_flag=True, help="Put it right in your own file; its comments stay.")
@click.option("--json", "as_json", is_flag=True, help="One object.")
def check_profile(
    name: str, vllm_version: str | None, installed: bool, write: bool, as_json: bool
) -> int:
    """Compare flags and environment with a vLLM version, and say what to write instead."""
    if installed and vllm_version is not None:
        raise UsageError("--installed and --vllm-version: give one of the two")
    profile = load_profile(name)
    release = release_of(profile) if vllm_version is None else parse_release(vllm_version)
    flags: frozenset[str] = frozenset()
    if installed and starts_vllm(profile):
        found = ask_installed(profile.server.command[0], os.environ)
        release, flags = found.release, found.flags
    checked = _checked(profile, release, flags)
    if as_json:
        print_json(
            {
                "profile": profile.name,
                "vllm_version": show(release),
                "corrections": [
                    {"name": one.name, "instead": one.instead, "why": str(one.why)}
                    for one in checked.corrections
                ],
                "warnings": list(checked.warnings),
            }
        )
    else:
        for one in checked.corrections:
            click.echo(f"{profile.name}: {strip_controls(one.detail)}")
        for warning in checked.warnings:
            click.echo(f"{profile.name}: note: {strip_controls(warning)}")
        if not checked.corrections and not checked.warnings and starts_vllm(profile):
            click.echo(f"{profile.name}: right for vLLM {show(release)}")
    if not checked.corrections:
        return 0
    if profile.server.compose_file is not None:
        if write:
            raise UsageError(f"put that right in {profile.server.compose_file}: it is not ours")
        return 1
    right = correct_profile(profile, release)
    if not write:
        if not as_json and right.is_changed:
            click.echo(f"corrected: {command_line(right.profile.server)}")
            click.echo(f"gpu-dash profiles check {name} --write keeps that")
        return 1
    kept = keep_corrected(find_profile(name), right.profile)
    if not as_json:
        click.echo(f"written: {kept}")
    return 1 if right.left else 0


@command.command("new")
@click.argument("name")
@click.option(
    "--from-command", "source", metavar="TEXT|-", help="What you would paste; - is stdin."
)
@click.option("--vllm-version", metavar="X.Y", help="Correct for this one, not the newest known.")
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="What was read, as one object.")
def new_profile(
    name: str, source: str | None, vllm_version: str | None, dry_run: bool, as_json: bool
) -> None:
    """Write a profile, from a launch command or from answers."""
    path = _path_of_new(name)
    release = NEWEST if vllm_version is None else parse_release(vllm_version)
    text = _asked_command() if source is None else source
    if text == "-":
        text = sys.stdin.buffer.read().decode(errors="replace")
    imported = import_text(text, release)
    written = profile_text(imported, release)
    if not dry_run:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_new(path, written)
    if as_json:
        print_json(imported.as_json())
        return
    if dry_run:
        click.echo(written)
        return
    _explain(imported)
    click.echo(f"written: {path}")


def _path_of_new(name: str) -> Path:
    from gpu_dash.cli.group import command_names

    if _NAME.fullmatch(name) is None:
        raise UsageError(f"profile {name!r}: a name is letters, digits, dots and dashes")
    if name in command_names():
        raise UsageError(f"profile {name!r}: gpu-dash has a command of that name; choose another")
    path = user_profiles_folder() / f"{name}.toml"
    if path.exists():
        raise UsageError(f"profile {name!r}: {path} exists; choose another name or edit that file")
    return path


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        path.chmod(0o600)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _asked_command() -> str:
    """The launch command that a few answers make."""
    model = click.prompt("Model (path or repository id)", type=str)
    gpus = click.prompt("GPUs (tensor parallel size)", type=click.IntRange(min=1), default=1)
    length = click.prompt("Longest context, tokens", type=click.IntRange(min=1), default=8192)
    port = click.prompt("Port", type=click.IntRange(0, 65535), default=8000)
    flags = {"tensor-parallel-size": gpus, "max-model-len": length, "port": port}
    return shlex.join(["vllm", "serve", model, *flag_arguments(flags)])


def _explain(imported: ImportedLaunch) -> None:
    for one in imported.corrections:
        click.echo(f"corrected: {one_line(one.detail)}")
    for warning in imported.warnings:
        click.echo(f"note: {one_line(warning)}")
    if imported.secrets:
        names = ", ".join(imported.secrets)
        click.echo(f"secrets, not written; export them before the launch: {names}")
    if imported.unresolved:
        click.echo(f"fill in, the text does not say: {', '.join(imported.unresolved)}")


def _checked(profile: Profile, release: Release, installed: frozenset[str]) -> CheckedLaunch:
    if profile.target is not None:
        return CheckedLaunch((), ("an endpoint is not launched, so there are no flags to check",))
    server = profile.server
    if not starts_vllm(profile):
        return CheckedLaunch((), ("it starts no vLLM, so its flags are its program's own",))
    if server.compose_file is not None:
        try:
            return as_written(profile, os.getcwd(), release)[1]
        except UsageError as error:
            return CheckedLaunch((), (str(error),))
    variables = tuple(server.env)
    return check_launch(dict(server.flags), variables, release, installed=installed)


def _facts(profile: Profile) -> list[tuple[str, str]]:
    server, target, load = profile.server, profile.target, profile.load
    facts: list[tuple[str, str]] = []
    if target is not None:
        facts += [("endpoint", target.base_url), ("model", target.model or "asked from the server")]
        facts += [("key", f"from ${target.api_key_env}")] if target.api_key_env else []
        facts += [("request", f"{name} = {value}") for name, value in target.extra_body.items()]
        facts += [("host", f"{name}={value}") for name, value in target.host_env.items()]
        facts += [("gfx", words)] if (words := override_words(target.host_env)) else []
    else:
        facts.append(("starts", command_line(server)))
        facts += [("env", f"{name}={value}") for name, value in server.env.items()]
    facts.append(("load", load.words))
    facts += [("header", name) for name in load.headers]
    if profile.expected is not None:
        low, high = profile.expected.output_tokens_per_s
        ttft = f", TTFT {profile.expected.ttft}" if profile.expected.ttft else ""
        at = profile.expected.concurrency
        facts.append(("expected", f"{low:,.0f} to {high:,.0f} tok/s at {at} concurrent{ttft}"))
    if profile.vllm_version is not None:
        facts.append(("vLLM", profile.vllm_version))
    return facts
