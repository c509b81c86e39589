"""``gpu-dash run``: launch, ramp, record and judge without a screen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from gpu_dash.cli.load_options import load_options, plan_of
from gpu_dash.cli.options import api_key_from, existing_log, headers_of
from gpu_dash.cli.run_job import RunJob
from gpu_dash.cli.targets import begin_profile
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import LoadPlan
from gpu_dash.server.profile_file import load_profile


@click.command("run")
@click.argument("profile", required=False)
@click.option("--base-url", metavar="URL", help="Load a server that runs already.")
@click.option("--model", metavar="ID", help="With --base-url; asked from the server if left out.")
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the key.")
@click.option("--log", type=click.Path(), help="With --base-url: the server's log, to be marked.")
@load_options
@click.option("--label", default="", help="A word for this run in the list of sessions.")
@click.option("--out", type=click.Path(), help="Session folder: new or empty.")
@click.option("--gpu", type=click.Choice(["auto", "nvml", "amd", "sim", "none"]))
@click.option("--corrected", is_flag=True, help="Launch with the flags as this vLLM takes them.")
@click.option("--force", is_flag=True, help="Launch although the pre-flight says no.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per step, then the verdict.")
def command(**options: Any) -> int:
    """Launch PROFILE (or take a server that runs), ramp the load, record, judge, stop."""
    begin = _begin_command(options)
    return asyncio.run(RunJob(begin, as_json=options["as_json"]).run())


def _begin_command(options: dict[str, Any]) -> Launch | Watch:
    """What the agent is asked to begin.

    Raises:
        UsageError: neither or both of a profile and a URL, or a profile that is wrong.
    """
    out = None if options["out"] is None else str(Path(options["out"]).absolute())
    if (options["profile"] is None) == (options["base_url"] is None):
        raise UsageError("run wants a PROFILE or --base-url URL, one of the two")
    if options["profile"] is not None:
        for name in ("model", "api_key_env", "log"):
            if options[name] is not None:
                raise UsageError(f"--{name.replace('_', '-')} goes with --base-url, not a profile")
        profile = load_profile(options["profile"])
        return begin_profile(
            profile,
            plan=plan_of(profile.plan(), options),
            headers=headers_of(profile.load.headers, options["headers"], has_key=profile.has_key),
            label=options["label"],
            session_folder=out,
            gpu_source=options["gpu"],
            force=options["force"],
            corrected=options["corrected"],
        )
    key = api_key_from(options["api_key_env"])
    return Watch(
        base_url=options["base_url"],
        model=options["model"],
        api_key=key,
        headers=headers_of({}, options["headers"], has_key=key is not None),
        log=existing_log(options["log"]),
        plan=plan_of(LoadPlan(), options),
        label=options["label"],
        session_folder=out,
        gpu_source=options["gpu"],
    )
