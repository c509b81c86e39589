"""All faults, in the order of the table."""

from __future__ import annotations

from tests.faults import before_launch, host, log, own, registry, server

_ORDER = tuple(module.__name__ for module in (before_launch, server, log, own, host))
PLAYS = dict(sorted(registry.PLAYS.items(), key=lambda item: _ORDER.index(item[1].__module__)))
