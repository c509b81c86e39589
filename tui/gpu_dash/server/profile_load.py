"""What a profile's ``[load]`` may say, beyond what the types alone tell."""

from __future__ import annotations

import math

from gpu_dash.model.errors import UsageError
from gpu_dash.model.headers import check_headers
from gpu_dash.model.load import MOST_LOAD_PROCS, MOST_REQUESTS_PER_S
from gpu_dash.model.plan_conflicts import conflict_of
from gpu_dash.model.profile import Profile

MOST = 10**9
"""Far above anything that a server takes."""


def check_load(profile: Profile) -> None:
    """Check the fields of ``[load]`` whose durations are known to be right.

    Raises:
        UsageError: the first field that is wrong, with its value and what it should be.
    """
    load = profile.load

    def fail(field: str, value: object, wanted: str) -> None:
        raise UsageError(f"`load.{field}`: {value!r} {wanted}")

    if not load.ramp or any(not 1 <= step <= MOST for step in load.ramp):
        fail("ramp", list(load.ramp), "is not a ramp; write numbers from 1 up")
    if any(not 0 < rate <= MOST_REQUESTS_PER_S for rate in load.rates):
        fail("rates", list(load.rates), "are not requests per second, above 0")
    for field, number, least, most in (
        ("prompt_tokens", load.prompt_tokens, 1, MOST),
        ("output_tokens", load.output_tokens, 1, MOST),
        ("requests", load.requests, 1, MOST),
        ("load_procs", load.load_procs, 1, MOST_LOAD_PROCS),
        ("shared_prefix", load.shared_prefix, 0, 1),
        ("turns", load.turns, 1, MOST),
        ("retries", load.retries, 0, MOST),
        ("seed", load.seed, 0, MOST),
    ):
        if isinstance(number, int | float) and not least <= number <= most:
            fail(field, number, f"is out of range; write {least} to {most:,}")
    if not 0 < load.trace_speed < math.inf:
        fail("trace_speed", load.trace_speed, "is no speed; 2.0 is twice as fast")
    if load.trace is not None and (load.rates or load.requests):
        fail("trace", load.trace, "says when each request is due; remove rates and requests")
    try:
        check_headers(load.headers.items(), has_key=profile.has_key)
        conflict = conflict_of(profile.plan())
    except UsageError as error:
        raise UsageError(f"`load`: {error}") from error
    if conflict:
        raise UsageError(f"`load`: {conflict}")
