"""AMD's names of architectures, and an override of them against the card that is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gpu_dash.doctor.check import Check, ok, warn

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
NODES = Path("/sys/class/kfd/kfd/topology/nodes")
CARDS = {
    "gfx906": "MI50, MI60",
    "gfx908": "MI100",
    "gfx90a": "MI210, MI250",
    "gfx942": "MI300",
    "gfx950": "MI350",
}
"""Which Instinct cards have an architecture."""


def gfx_here(nodes: Path = NODES) -> tuple[str, ...]:
    """The architecture of each card of this host, as the kernel's compute driver has it: ``90008``
    is gfx908, ``90010`` gfx90a."""
    found = []
    for path in sorted(nodes.glob("*/properties")):
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        version = re.search(r"^gfx_target_version (\d+)$", text, re.MULTILINE)
        if version is not None and int(version[1]):
            found.append(_name(*_parts(int(version[1]))))
    return tuple(found)


def named_by(override: str) -> str | None:
    """The architecture that an override names: ``9.0.8`` → ``gfx908``."""
    numbers = override.split(".")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        return None
    return _name(*map(int, numbers))


def override_words(environment: Mapping[str, str], nodes: Path = NODES) -> str:
    """An override beside the real names, for a person; empty where there is no override."""
    if OVERRIDE not in environment:
        return ""
    asked = named_by(environment[OVERRIDE]) or environment[OVERRIDE]
    card = f" ({CARDS[asked]})" if asked in CARDS else ""
    real = ", ".join(sorted(set(gfx_here(nodes))))
    return f"{OVERRIDE} names {asked}{card}; cards here: {real or 'no AMD card'}"


def check_override(environment: Mapping[str, str], nodes: Path = NODES) -> Check | None:
    """What an override does to the cards; ``None`` where there is none."""
    if OVERRIDE not in environment:
        return None
    words = override_words(environment, nodes)
    asked, real = named_by(environment[OVERRIDE]), set(gfx_here(nodes))
    if asked is None:
        return warn("gfx", f"{OVERRIDE}={environment[OVERRIDE]} is no version", "write 9.0.8")
    if real == {asked}:
        action = f"it changes nothing: leave {OVERRIDE} out, unless a library lacks {asked}"
        return warn("gfx", f"{words}: the card's own name", action)
    if real:
        action = "its libraries need kernels for the name it is given; wrong results are possible"
        return warn("gfx", f"{words}: the runtime is told of another card", action)
    return ok("gfx", f"{words}; ROCm on the endpoint's host reads it, vLLM does not")


def _parts(version: int) -> tuple[int, int, int]:
    return version // 10_000, version // 100 % 100, version % 100


def _name(major: int, minor: int, step: int) -> str:
    return f"gfx{major}{minor:x}{step:x}"
