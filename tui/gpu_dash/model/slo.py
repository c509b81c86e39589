"""What a request must keep to count as goodput, as a person writes it."""

from __future__ import annotations

from gpu_dash.model.duration import parse_duration
from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import Slo

_FIELDS = {"ttft": "ttft_s", "tpot": "tpot_s", "e2e": "e2e_s"}


def parse_slo(text: str) -> Slo:
    """``ttft=500ms,tpot=30ms`` → limits.

    Raises:
        UsageError: a name or a duration in it is none.
    """
    limits: dict[str, float] = {}
    for part in text.split(","):
        name, _, duration = part.partition("=")
        if name.strip() not in _FIELDS:
            raise UsageError(f"{part!r}: write ttft=500ms, tpot=30ms or e2e=20s")
        limits[_FIELDS[name.strip()]] = parse_duration(duration)
    return Slo(**limits)
