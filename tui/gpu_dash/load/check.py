"""Whether a load plan can be run, and a target be reached with the bytes that HTTP allows."""

from __future__ import annotations

import math
import resource
from urllib.parse import urlsplit

from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import MOST_REQUESTS_PER_S, LoadPlan, Target
from gpu_dash.model.plan_conflicts import conflict_of

OWN_OPEN_FILES = 64
"""What a worker has open beside its connections, with room to spare."""


def check_plan(plan: LoadPlan) -> None:
    """Refuse a plan that cannot be run.

    Raises:
        UsageError: a number in it is out of range.
    """
    if not plan.ramp:
        raise UsageError("ramp: no step in it; give concurrencies such as 1,4,8")
    for concurrency in plan.ramp:
        _at_least("ramp", concurrency, 1)
    for rate in plan.rates:
        check_rate(rate)
    _at_least("output tokens", plan.output_tokens, 1)
    _at_least("turns", plan.turns, 1)
    _at_least("retries", plan.retries, 0)
    if not 0 <= plan.shared_prefix <= 1:
        raise UsageError(f"shared prefix: {plan.shared_prefix:g} is no share; give 0 to 1")
    if not 0 < plan.trace_speed < math.inf:
        raise UsageError(f"trace speed: {plan.trace_speed:g} is no speed; 2 is twice as fast")
    if conflict := conflict_of(plan):
        raise UsageError(conflict)
    if plan.requests is not None:
        _at_least("requests", plan.requests, 1)
    if plan.prompt_tokens is not None:
        _at_least("prompt tokens", plan.prompt_tokens, 1)
    for name, seconds in (
        ("step", plan.step_s),
        ("timeout", plan.timeout_s),
        ("stall timeout", plan.stall_s),
    ):
        if not seconds > 0:
            raise UsageError(f"{name}: {seconds:g} s is no length of time; give one above 0s")
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard_limit != resource.RLIM_INFINITY:
        check_open_files(max(plan.ramp), hard_limit)
    if plan.warmup_s < 0:
        raise UsageError(f"warm-up: {plan.warmup_s:g} s is negative; give 0s for none")


def check_rate(rate: float) -> None:
    """Refuse a rate of an open loop that cannot be sent.

    Raises:
        UsageError: it is not above 0, or beyond what a host can send.
    """
    if not 0 < rate <= MOST_REQUESTS_PER_S:
        raise UsageError(
            f"rate: {rate:g} requests per second; give more than 0, up to {MOST_REQUESTS_PER_S:,}"
        )


def check_open_files(concurrency: int, limit: int) -> None:
    """Refuse more requests in flight than a worker may have open files: each holds a connection.

    Raises:
        UsageError: with the limit, and how it is raised.
    """
    if concurrency > limit - OWN_OPEN_FILES:
        raise UsageError(
            f"concurrency: {concurrency} requests need as many open files, and the hard limit "
            f"is {limit}; raise it with `ulimit -Hn`, or ask for less"
        )


def check_target(target: Target) -> None:
    """Refuse a target that no request can be sent to.

    Raises:
        UsageError: the URL or the key cannot be sent. The message never holds the key.
    """
    try:
        url = urlsplit(target.base_url)
        is_usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UsageError(
            f"{target.base_url!r} is no base URL; write http://HOST:PORT or https://HOST"
        )
    key = target.api_key
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(
            "the API key holds a space, a line break or a letter outside ASCII; "
            "check the environment variable that it comes from"
        )


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise UsageError(f"{name}: {value} is too small; give {least} or more")
