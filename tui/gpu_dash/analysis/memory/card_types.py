"""Memory of card types, as ``nvidia-smi`` and ``rocm-smi`` print its total: for plans of cards that
are not in this host."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True)
class CardType:
    """A kind of card."""

    name: str
    memory_bytes: int


CARD_TYPES = tuple(
    CardType(name, mebibytes * MIB)
    for name, mebibytes in (
        ("RTX 4090", 24_564),
        ("RTX 5090", 32_607),
        ("V100 32GB", 32_768),
        ("MI100", 32_752),
        ("A100 40GB", 40_960),
        ("L40S", 46_068),
        ("RTX A6000", 49_140),
        ("MI210", 65_520),
        ("H100 80GB", 81_559),
        ("A100 80GB", 81_920),
        ("H200", 143_771),
        ("B200", 183_359),
        ("MI300X", 196_592),
    )
)
"""From the smallest to the largest."""


def card_type(name: str) -> CardType | None:
    """The type of that name, however it is spelt: ``h100-80gb``, ``RTX 4090``, ``4090``."""
    wanted = _plain(name)
    exact = [card for card in CARD_TYPES if _plain(card.name) == wanted]
    part = [card for card in CARD_TYPES if wanted and wanted in _plain(card.name)]
    found = exact or part
    return found[0] if len(found) == 1 else None


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
