"""``nvidia-smi -L``: names and UUIDs of the cards and of their MIG devices."""

from __future__ import annotations

import re

from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.model.gpu import GpuVendor

_CARD = re.compile(r"GPU (\d+): (.+?) \(UUID: (GPU-[0-9a-fA-F-]+)\)\s*$")
_MIG = re.compile(r"\s+MIG \S+\s+Device\s+\d+: \(UUID: (MIG-[0-9a-zA-Z/-]+)\)\s*$")


def read_list(text: str) -> list[SavedCard] | None:
    """Cards of the list; ``None`` if the text holds none."""
    cards: list[SavedCard] = []
    for line in text.splitlines():
        card, device = _CARD.match(line), _MIG.match(line)
        if card is not None:
            cards.append(SavedCard(int(card[1]), GpuVendor.NVIDIA))
            cards[-1].learn_name(card[2])
            cards[-1].learn("uuid", card[3])
        elif device is not None and cards:
            known = cards[-1].facts.get("mig_uuids", ())
            cards[-1].facts["mig_uuids"] = (*known, device[1])
    return cards or None
