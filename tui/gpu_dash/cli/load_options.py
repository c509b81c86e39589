"""The options that say what load to drive, and the plan that they make of a profile's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from gpu_dash.cli.options import (
    Duration,
    JsonObject,
    Ramp,
    Rates,
    SloLimits,
    TokenCount,
    header_option,
)
from gpu_dash.load.check import check_plan
from gpu_dash.load.dataset import read_dataset
from gpu_dash.load.trace import with_trace
from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import MOST_LOAD_PROCS, Arrival, Endpoint, LoadPlan
from gpu_dash.model.token_spread import TokenSpread

ARRIVALS = [arrival.value for arrival in Arrival]
MOST = 10**9
"""Far above anything that a server takes."""
Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--ramp", type=Ramp(), metavar="1,4,8", help="Concurrency, step by step."),
    click.option("--rate", type=Rates(), metavar="2,4,8", help="Requests per second instead."),
    click.option("--arrival", type=click.Choice(ARRIVALS), help="With --rate: how spread."),
    click.option("--trace", type=click.Path(), help="Replay a trace instead: JSONL or CSV."),
    click.option("--trace-speed", type=float, metavar="2", help="So much faster than recorded."),
    click.option("--load-procs", type=click.IntRange(1, MOST_LOAD_PROCS), help="Share the load."),
    click.option("--step", type=Duration(), metavar="60s", help="Length of a step's window."),
    click.option("--warmup", type=Duration(), metavar="5s", help="Not counted, before a window."),
    click.option("--requests", type=click.IntRange(1, MOST), help="A step is N requests instead."),
    click.option("--chat", "endpoint", flag_value="chat", help="Use /v1/chat/completions."),
    click.option("--completions", "endpoint", flag_value="completions", help="Or /v1/completions."),
    click.option("--prompt", metavar="TEXT", help="Text of each request."),
    click.option("--prompt-tokens", type=click.IntRange(1, MOST), help="Of a synthetic prompt."),
    click.option("--dataset", type=click.Path(), help="Prompts from ShareGPT JSON or JSON Lines."),
    click.option("--shared-prefix", type=click.FloatRange(0, 1), help="Of a synthetic prompt."),
    click.option("--turns", type=click.IntRange(1, 1000), help="Of a conversation; with --chat."),
    click.option("--output-tokens", type=TokenCount(), metavar="N|uniform:LEAST,MOST|…",
                 help="Tokens that each asks for; or normal:MEAN,DEVIATION, lognormal:…"),
    click.option("--seed", type=click.IntRange(0, MOST), help="Reproduces prompts and arrivals."),
    header_option,
    click.option("--extra-body", type=JsonObject(), metavar="JSON", help="Added to each request."),
    click.option("--retries", type=click.IntRange(0, 100),
                 help="Send again what was refused, 429 or 503, before its first token."),
    click.option("--slo", type=SloLimits(), metavar="ttft=500ms,tpot=30ms", help="For goodput."),
    click.option("--timeout", type=Duration(), metavar="120s", help="Of one request."),
)  # fmt: skip
_EXCLUSIVE: Sequence[tuple[str, str, str]] = (
    ("ramp", "rate", "a ramp of concurrencies or of rates, one of the two"),
    ("prompt", "prompt_tokens", "give one of the two"),
    ("prompt", "dataset", "give one of the two"),
    ("prompt_tokens", "dataset", "give one of the two"),
    ("shared_prefix", "dataset", "only a synthetic prompt has a shared prefix"),
    ("shared_prefix", "prompt", "only a synthetic prompt has a shared prefix"),
    ("step", "requests", "a step has a length or a number of requests"),
    *(
        ("trace", name, "a trace says when each request is due and what it asks")
        for name in ("ramp", "rate", "arrival", "requests", "step", "prompt", "prompt_tokens",
                     "dataset", "shared_prefix", "turns")
    ),
)  # fmt: skip
"""Options that say the same thing twice."""


def load_options(command: Decorated) -> Decorated:
    """Give a command the options of this module."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def plan_of(plan: LoadPlan, options: dict[str, Any]) -> LoadPlan:
    """A profile's plan with what the command line says otherwise.

    Raises:
        UsageError: options that exclude each other, or a file that cannot be used.
    """
    _check_options(options)
    changes = {
        "ramp": options["ramp"],
        "rates": options["rate"],
        "arrival": None if options["arrival"] is None else Arrival(options["arrival"]),
        "trace": _path(options["trace"]),
        "trace_speed": options["trace_speed"],
        "workers": options["load_procs"],
        "step_s": options["step"],
        "warmup_s": options["warmup"],
        "requests": options["requests"],
        "endpoint": None if options["endpoint"] is None else Endpoint(options["endpoint"]),
        "prompt": options["prompt"],
        "prompt_tokens": options["prompt_tokens"],
        "dataset": _path(options["dataset"]),
        "shared_prefix": options["shared_prefix"],
        "turns": options["turns"],
        "seed": options["seed"],
        "extra_body": options["extra_body"],
        "retries": options["retries"],
        "slo": options["slo"],
        "timeout_s": options["timeout"],
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    changed: LoadPlan = msgspec.structs.replace(plan, **_replaced(options), **changes)
    if options["arrival"] is not None and not changed.rates:
        raise UsageError("--arrival says how the requests of --rate are spread; give --rate too")
    if options["trace_speed"] is not None and changed.trace is None:
        raise UsageError("--trace-speed is of a replay; give --trace too")
    if changed.dataset is not None:
        read_dataset(changed.dataset)
    changed = with_trace(changed)
    check_plan(changed)
    return changed


def _replaced(options: dict[str, Any]) -> dict[str, Any]:
    """What an option puts out of force, where the profile has it."""
    replaced: dict[str, Any] = {}
    if options["ramp"] is not None:
        replaced["rates"] = ()
    asked = ("prompt", "prompt_tokens", "dataset", "trace")
    if any(options[name] is not None for name in asked):
        replaced |= {"prompt": None, "dataset": None, "trace": None}
    if any(options[name] is not None for name in ("ramp", "rate", "step")):
        replaced |= {"trace": None}
    if any(options[name] is not None for name in ("prompt", "dataset", "trace")):
        replaced["shared_prefix"] = 0.0
    if options["step"] is not None:
        replaced["requests"] = None
    tokens = options["output_tokens"]
    if isinstance(tokens, TokenSpread):
        replaced |= {"output_spread": tokens, "output_tokens": max(1, round(tokens.mean))}
    elif tokens is not None:
        replaced |= {"output_spread": None, "output_tokens": tokens}
    return {
        name: value
        for name, value in replaced.items()
        if options.get(name) is None or name == "output_tokens"
    }


def _check_options(options: dict[str, Any]) -> None:
    for one, other, why in _EXCLUSIVE:
        if options[one] is not None and options[other] is not None:
            raise UsageError(f"{_flag(one)} and {_flag(other)}: {why}")
    counted = next((name for name in ("requests", "trace") if options[name] is not None), None)
    if options["warmup"] and counted:
        raise UsageError(
            f"--warmup and {_flag(counted)}: all of these requests count, from the first to the "
            "last token; leave --warmup out"
        )
    for name in ("step", "timeout"):
        if options[name] == 0:
            raise UsageError(f"--{name}: 0 is no length; write 5s")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _path(given: str | None) -> str | None:
    return None if given is None else str(Path(given).absolute())
