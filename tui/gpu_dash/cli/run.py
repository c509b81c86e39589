"""``gpu-dash run``: launch, ramp, record and judge without a screen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import msgspec

from gpu_dash.cli.options import (
    Duration,
    JsonObject,
    Ramp,
    Rates,
    SloLimits,
    api_key_from,
    existing_log,
)
from gpu_dash.cli.run_job import RunJob
from gpu_dash.cli.targets import begin_profile
from gpu_dash.load.dataset import read_dataset
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import Arrival, Endpoint, LoadPlan
from gpu_dash.server.profile_file import load_profile

MOST = 10**9
"""Far above anything that a server takes."""


@click.command("run")
@click.argument("profile", required=False)
@click.option("--base-url", metavar="URL", help="Load a server that runs already.")
@click.option("--model", metavar="ID", help="With --base-url; asked from the server if left out.")
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the key.")
@click.option("--log", type=click.Path(), help="With --base-url: the server's log, to be marked.")
@click.option("--ramp", type=Ramp(), metavar="1,4,8", help="Concurrency, step by step.")
@click.option("--rate", type=Rates(), metavar="2,4,8", help="Requests per second instead.")
@click.option("--arrival", type=click.Choice(list(Arrival)), help="With --rate: how spread.")
@click.option("--load-procs", type=click.IntRange(1, 64), help="Processes that share the load.")
@click.option("--step", type=Duration(), metavar="60s", help="Length of a step's window.")
@click.option("--warmup", type=Duration(), metavar="5s", help="Not counted, before each window.")
@click.option("--requests", type=click.IntRange(1, MOST), help="A step is N requests instead.")
@click.option("--chat", "endpoint", flag_value="chat", help="Use /v1/chat/completions.")
@click.option("--completions", "endpoint", flag_value="completions", help="Use /v1/completions.")
@click.option("--prompt", metavar="TEXT", help="Text of each request.")
@click.option("--prompt-tokens", type=click.IntRange(1, MOST), help="Length of a synthetic prompt.")
@click.option("--dataset", type=click.Path(), help="Prompts from ShareGPT JSON or JSON Lines.")
@click.option("--shared-prefix", type=click.FloatRange(0, 1), help="Share of a synthetic prompt.")
@click.option("--extra-body", type=JsonObject(), metavar="JSON", help="Added to each request.")
@click.option("--output-tokens", type=click.IntRange(1, MOST), help="Tokens that each asks for.")
@click.option("--seed", type=click.IntRange(0, MOST), help="Reproduces the prompts.")
@click.option("--slo", type=SloLimits(), metavar="ttft=500ms,tpot=30ms", help="For goodput.")
@click.option("--timeout", type=Duration(), metavar="120s", help="Of one request.")
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
            plan=_plan(profile.plan(), options),
            label=options["label"],
            session_folder=out,
            gpu_source=options["gpu"],
            force=options["force"],
            corrected=options["corrected"],
        )
    return Watch(
        base_url=options["base_url"],
        model=options["model"],
        api_key=api_key_from(options["api_key_env"]),
        log=existing_log(options["log"]),
        plan=_plan(LoadPlan(), options),
        label=options["label"],
        session_folder=out,
        gpu_source=options["gpu"],
    )


def _plan(plan: LoadPlan, options: dict[str, Any]) -> LoadPlan:
    """The profile's plan with what the command line says otherwise."""
    given = {
        "ramp": options["ramp"],
        "rates": options["rate"],
        "arrival": options["arrival"],
        "workers": options["load_procs"],
        "step_s": options["step"],
        "warmup_s": options["warmup"],
        "requests": options["requests"],
        "endpoint": None if options["endpoint"] is None else Endpoint(options["endpoint"]),
        "prompt": options["prompt"],
        "prompt_tokens": options["prompt_tokens"],
        "dataset": _dataset(options),
        "shared_prefix": options["shared_prefix"],
        "extra_body": options["extra_body"],
        "output_tokens": options["output_tokens"],
        "seed": options["seed"],
        "slo": options["slo"],
        "timeout_s": options["timeout"],
    }
    if options["prompt_tokens"] is not None and options["prompt"] is not None:
        raise UsageError("--prompt and --prompt-tokens: give one of the two")
    if options["step"] is not None and options["requests"] is not None:
        raise UsageError("--step and --requests: a step has a length or a number of requests")
    if options["rate"] is not None and options["ramp"] is not None:
        raise UsageError("--ramp and --rate: a ramp of concurrencies or of rates, one of the two")
    if options["arrival"] is not None and options["rate"] is None:
        raise UsageError("--arrival says how the requests of --rate are spread; give --rate too")
    for name in ("step", "timeout"):
        if options[name] == 0:
            raise UsageError(f"--{name}: 0 is no length; write 5s")
    changes = {name: value for name, value in given.items() if value is not None}
    if options["prompt_tokens"] is not None:
        changes["prompt"] = None
    changed: LoadPlan = msgspec.structs.replace(plan, **changes)
    return changed


def _dataset(options: dict[str, Any]) -> str | None:
    """The absolute path of the file with prompts, once it is known to have some.

    Raises:
        UsageError: it has none, or the prompts were given otherwise too.
    """
    if options["dataset"] is None:
        return None
    for name in ("prompt", "prompt_tokens", "shared_prefix"):
        if options[name] is not None:
            raise UsageError(f"--dataset and --{name.replace('_', '-')}: give one of the two")
    path = str(Path(options["dataset"]).absolute())
    read_dataset(path)
    return path
