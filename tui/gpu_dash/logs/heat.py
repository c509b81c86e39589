"""What the cards did while a finding came about, and what that makes of its first check.

A collective that timed out reads the same whether a card was throttled to a crawl or a cable is
bad. Readings of the cards tell the two apart, so they decide what is looked at first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from gpu_dash.model.events import Finding

NEAR_LIMIT_CELSIUS = 3.0
"""A card this close to the nearest of its limits counts as hot though it does not throttle yet."""
BEFORE_S = 60.0
"""Heat this long before something was said may have to do with it, where the line does not say
how long it waited."""

_COLLECTIVE = frozenset({"nccl_timeout", "stall"})
"""Kinds that heat explains; when the cards are cool, that is said, too."""
_HARDWARE = frozenset({"gpu_lost", "worker_died"})
"""Kinds for which heat just before is worth a look, and coolness proves nothing."""
_WAITED = re.compile(
    r"ran for (?P<ms>\d+) milli|Timeout\(ms\)=(?P<limit_ms>\d+)"
    r"|(?:stuck for|found in|timed out after) (?P<s>\d+) ?s"
)
_DEFAULT_WAIT_S = {"nccl_timeout": 600.0, "stall": 60.0}
_INDEX = re.compile(r"(?:gpu|rank|tp):(\d+)")


class CardHeat(msgspec.Struct, frozen=True, kw_only=True):
    """One card over some time."""

    gpu: int
    peak_temperature_celsius: float | None = None
    headroom_celsius: float | None = None
    """The least there was."""
    thermal_reasons: tuple[str, ...] = ()
    """Names of the thermal throttle reasons that were seen."""
    lowest_sm_clock_mhz: float | None = None
    """While it throttled."""
    sm_clock_max_mhz: float | None = None

    @property
    def is_hot(self) -> bool:
        """It throttled thermally, or was about to."""
        near = self.headroom_celsius is not None and self.headroom_celsius <= NEAR_LIMIT_CELSIUS
        return bool(self.thermal_reasons) or near

    def __str__(self) -> str:
        words = []
        if self.peak_temperature_celsius is not None:
            words.append(f"{self.peak_temperature_celsius:.0f} °C")
        if self.thermal_reasons:
            words.append(f"throttled ({', '.join(self.thermal_reasons)})")
        if self.lowest_sm_clock_mhz is not None and self.thermal_reasons:
            of = "" if self.sm_clock_max_mhz is None else f" of {self.sm_clock_max_mhz:.0f}"
            words.append(f"{self.lowest_sm_clock_mhz:.0f}{of} MHz")
        return f"GPU {self.gpu}: {', '.join(words) or 'no temperature'}"


def seconds_before(finding: Finding) -> float | None:
    """How far back the cards' readings matter for a finding; ``None``: not at all."""
    if finding.kind not in _COLLECTIVE | _HARDWARE:
        return None
    found = _WAITED.search(finding.message)
    waited_s = _DEFAULT_WAIT_S.get(finding.kind, 0.0)
    if found is not None:
        milliseconds = found["ms"] or found["limit_ms"]
        waited_s = int(milliseconds) / 1000 if milliseconds else float(found["s"])
    return waited_s + BEFORE_S


def advise(finding: Finding, cards: Sequence[CardHeat]) -> Finding:
    """The finding with a first check that fits what the cards did.

    Args:
        finding: as the log alone tells it.
        cards: every card over :func:`seconds_before` the finding; empty where that is not known.
    """
    if not cards or finding.kind not in _COLLECTIVE | _HARDWARE:
        return finding
    hot = sorted((card for card in cards if card.is_hot), key=_heat, reverse=True)
    if hot:
        first = (
            f"temperature first: {'; '.join(map(str, hot))}: "
            "air flow, fan and power limit of that card"
        )
        return _replace(finding, first, (finding.first_check, *finding.checks))
    if finding.kind in _HARDWARE or not any(c.peak_temperature_celsius for c in cards):
        return finding
    hottest = max(cards, key=_heat)
    index = _INDEX.fullmatch(finding.subject)
    of = f" of GPU {index[1]}" if index and any(c.gpu == int(index[1]) for c in cards) else ""
    first = (
        f"XID in the kernel log{of} (temperatures are normal: {hottest}, no thermal throttle); "
        "then the P2P path: `nvidia-smi topo -m`, IOMMU/ACS"
    )
    return _replace(finding, first, finding.checks)


def _heat(card: CardHeat) -> tuple[bool, float]:
    return (bool(card.thermal_reasons), card.peak_temperature_celsius or 0.0)


def _replace(finding: Finding, first_check: str, checks: tuple[str, ...]) -> Finding:
    return msgspec.structs.replace(finding, first_check=first_check, checks=checks)
