"""One check and what came of it."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from gpu_dash.model.text import one_line


class CheckStatus(enum.StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A line of ``gpu-dash doctor``."""

    check: str
    status: CheckStatus
    detail: str
    action: str | None = None
    """What to do; ``None`` where there is nothing to do."""


def ok(check: str, detail: str) -> Check:
    """A check that found nothing wrong."""
    return Check(check=check, status=CheckStatus.OK, detail=one_line(detail))


def warn(check: str, detail: str, action: str) -> Check:
    """Something to know that stands in nobody's way yet."""
    return Check(check=check, status=CheckStatus.WARN, detail=one_line(detail), action=action)


def fail(check: str, detail: str, action: str) -> Check:
    """Something that a launch or a run would fail on."""
    return Check(check=check, status=CheckStatus.FAIL, detail=one_line(detail), action=action)


def any_failed(checks: Iterable[Check]) -> bool:
    """Whether one of them failed."""
    return any(check.status is CheckStatus.FAIL for check in checks)
