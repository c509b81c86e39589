"""All faults, in the order of the table."""

from __future__ import annotations

from tests.faults import before_launch, host, log, own, server
from tests.faults.registry import PLAYS

__all__ = ["PLAYS", "before_launch", "host", "log", "own", "server"]
