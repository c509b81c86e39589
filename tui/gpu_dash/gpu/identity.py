"""Which physical cards a process sees, in the order in which it counts them. Pure.

A server counts the cards that its environment shows it from 0; the screen counts those of the
host. Local rank N of the server (``Worker_TP1``: 1) works on the N-th card of
:func:`visible_gpus`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpu_dash.model.gpu import GpuInfo, GpuVendor

_OLD_MIG = re.compile(r"MIG-(GPU-[0-9a-fA-F-]+)/\d+/\d+$")
"""A MIG device as drivers before 470 name it: by its card and its instances."""


def visible_gpus(environment: Mapping[str, str], gpus: Sequence[GpuInfo]) -> tuple[int, ...]:
    """The cards that the variables of the vendor's runtime leave visible.

    As the runtimes do: an unset variable shows all, an empty one none, and the first entry that
    names no card ends the list. An entry is an index, the beginning of a UUID, or a MIG device,
    which is a part of its card: a card with two of them is there twice.

    Args:
        environment: of the process.
        gpus: the host's cards.
    """
    cards = sorted(gpus, key=lambda info: info.gpu)
    if any(info.vendor is GpuVendor.AMD for info in cards):
        cards = _chosen(environment.get("ROCR_VISIBLE_DEVICES"), cards)
        narrower = environment.get("HIP_VISIBLE_DEVICES", environment.get("CUDA_VISIBLE_DEVICES"))
    else:
        if environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
            cards.sort(key=lambda info: info.pci_bus_id)
        narrower = environment.get("CUDA_VISIBLE_DEVICES")
    return tuple(info.gpu for info in _chosen(narrower, cards))


def card_of_rank(rank: int, environment: Mapping[str, str], gpus: Sequence[GpuInfo]) -> int | None:
    """The host's index of the card that a local rank works on; ``None`` if it sees no such card."""
    visible = visible_gpus(environment, gpus)
    return visible[rank] if 0 <= rank < len(visible) else None


def _chosen(variable: str | None, cards: list[GpuInfo]) -> list[GpuInfo]:
    if variable is None:
        return cards
    chosen = []
    for entry in variable.split(","):
        card = _named(entry.strip(), cards)
        if card is None:
            break
        chosen.append(card)
    return chosen


def _named(entry: str, cards: Sequence[GpuInfo]) -> GpuInfo | None:
    """The one card that an entry names."""
    if entry.isdigit():
        return cards[int(entry)] if int(entry) < len(cards) else None
    old = _OLD_MIG.match(entry)
    name = (old[1] if old is not None else entry).lower()
    if not name.startswith(("gpu-", "mig-")):
        return None
    found = [
        card
        for card in cards
        if card.uuid.lower().startswith(name)
        or any(device.lower().startswith(name) for device in card.mig_uuids)
    ]
    return found[0] if len(found) == 1 else None
