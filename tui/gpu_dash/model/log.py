"""A line of the server's log, and what is found in one."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How soon a person should look."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class LogLine(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One line, stripped of control sequences."""

    number: int
    """1-based, in the file."""
    text: str
    kind: str = ""
    """The kind of the finding that this line belongs to, for the gutter; empty for most lines."""
    severity: Severity = Severity.INFO
    root: bool = False
    """The line is a cause, as far as was known when it was read; of a marked line ``False`` means
    that it followed from another."""
