"""Which release of vLLM knows which flag and which variable."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from gpu_dash.model.errors import UsageError

Release = tuple[int, int]
"""``(0, 33)``: what decides about names; patch releases keep them."""

NEWEST: Release = (0, 33)
OLDEST: Release = (0, 6)

_LEGACY_FLAGS: Mapping[str, tuple[Release, Release]] = {
    # vLLM 0.4.3, before the first release of the table
    "image-input-type": ((0, 4), (0, 4)),
    "image-token-id": ((0, 4), (0, 4)),
    "image-input-shape": ((0, 4), (0, 4)),
    "image-feature-size": ((0, 4), (0, 4)),
}


@dataclass(frozen=True)
class Span:
    """The first and the last release that was read and knows a name."""

    first: Release
    last: Release

    def __contains__(self, release: Release) -> bool:
        return self.first <= release <= self.last


def parse_release(text: str) -> Release:
    """``0.18``, ``v0.18.1``, ``0.20.0+cpu`` → ``(0, 18)``.

    Raises:
        UsageError: it is none, or outside of what the table covers.
    """
    match = re.match(r"v?(\d+)\.(\d+)", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a vLLM version; write 0.18")
    release = int(match[1]), int(match[2])
    if not OLDEST <= release <= NEWEST:
        raise UsageError(
            f"vLLM {text}: its flags are not known here; choose {show(OLDEST)} to {show(NEWEST)}"
        )
    return release


def show(release: Release) -> str:
    """``(0, 18)`` → ``0.18``."""
    return f"{release[0]}.{release[1]}"


def flag_span(name: str) -> Span | None:
    """When a long flag (without dashes) was known; ``None``: never in any release read."""
    return _table()["flags"].get(name)


def variable_span(name: str) -> Span | None:
    """When a ``VLLM_`` variable was known."""
    return _table()["variables"].get(name)


def flags_of(release: Release) -> frozenset[str]:
    """The long flags that a release defines."""
    return frozenset(name for name, span in _table()["flags"].items() if release in span)


def variables_of(release: Release) -> frozenset[str]:
    """The ``VLLM_`` variables that a release knows."""
    return frozenset(name for name, span in _table()["variables"].items() if release in span)


@functools.cache
def _table() -> Mapping[str, Mapping[str, Span]]:
    text = resources.files("gpu_dash.server.flags").joinpath("history.toml").read_text("utf-8")
    data = tomllib.loads(text)
    table = {
        kind: {
            name: Span(_release(first), _release(last))
            for name, (first, last) in data[kind].items()
        }
        for kind in ("flags", "variables")
    }
    table["flags"] |= {name: Span(*span) for name, span in _LEGACY_FLAGS.items()}
    return table


def _release(text: str) -> Release:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)
