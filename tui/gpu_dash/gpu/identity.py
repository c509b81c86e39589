"""Which physical cards a process sees, in the order in which it counts them. Pure.

A server counts the cards that its environment shows it from 0; the screen counts those of the
host. Local rank N of the server (``Worker_TP1``: 1) works on the N-th card that it sees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from gpu_dash.model.gpu import GpuInfo, GpuVendor

_OLD_MIG = re.compile(r"MIG-(GPU-[0-9a-fA-F-]+)/\d+/\d+$")
"""A MIG device as drivers before 470 name it: by its card and its instances."""
_INDEX = re.compile(r"\+?(\d+)")
"""The runtimes read an index as C's ``strtoul`` does: ``2nd`` is 2."""
_CUDA, _HIP, _ROCR = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Visible:
    """What a process sees."""

    gpus: tuple[int, ...]
    """Host indexes in the process's own order; a card stands twice for two of its MIG devices."""
    problem: str = ""
    """Why it sees fewer than were named: an entry that names no card, or one card named twice."""


def visible_gpus(environment: Mapping[str, str], gpus: Sequence[GpuInfo]) -> Visible:
    """The cards that the variables of the vendor's runtime leave visible.

    As the runtimes do: an unset variable shows all, an empty one none, the first entry that names
    no card ends the list, and a card that is named twice leaves none. An entry is an index, the
    beginning of a UUID, or a MIG device, which is a part of its card.

    Args:
        environment: of the process.
        gpus: the host's cards.
    """
    cards = sorted(gpus, key=lambda info: info.gpu)
    if any(info.vendor is GpuVendor.AMD for info in cards):
        variables = [_ROCR, _HIP if _HIP in environment else _CUDA]
    else:
        variables = [_CUDA]
        if environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
            cards.sort(key=lambda info: info.pci_bus_id)
    problems = []
    for variable in variables:
        if variable in environment:
            cards, problem = _chosen(environment[variable], cards)
            if problem:
                problems.append(f"{variable}={environment[variable]}: {problem}")
    return Visible(tuple(info.gpu for info in cards), "; ".join(problems))


def _chosen(value: str, cards: list[GpuInfo]) -> tuple[list[GpuInfo], str]:
    """The cards of a list of entries, and what is wrong with it."""
    chosen: list[GpuInfo] = []
    parts: set[str] = set()
    for entry in (entry.strip() for entry in value.split(",")):
        if entry.startswith("-") or not value.strip():
            break  # the usual ways to say: no card from here on
        found = _named(entry, cards)
        if found is None:
            return chosen, f"{entry!r} names no card, and what follows it is not seen either"
        card, part = found
        if part in parts:
            return [], f"{entry!r} names a card for the second time, so that none is seen"
        parts.add(part)
        chosen.append(card)
    return chosen, ""


def _named(entry: str, cards: Sequence[GpuInfo]) -> tuple[GpuInfo, str] | None:
    """The one card that an entry names, and the UUID of the card or of its part."""
    index = _INDEX.match(entry)
    if index is not None:
        place = int(index[1])
        return (cards[place], cards[place].uuid or str(place)) if place < len(cards) else None
    old = _OLD_MIG.match(entry)
    name = (old[1] if old is not None else entry).lower()
    if not name.startswith(("gpu-", "mig-")):
        return None
    found = [
        (card, entry if old is not None else uuid)
        for card in cards
        for uuid in (card.uuid, *card.mig_uuids)
        if uuid.lower().startswith(name)
    ]
    return found[0] if len(found) == 1 else None


def container_gpus(arguments: Sequence[str], gpus: Sequence[GpuInfo]) -> list[GpuInfo]:
    """The cards that the arguments of ``docker run`` give to a container.

    ``--gpus all``, ``--gpus 2``, ``--gpus '"device=1,GPU-ab"'``, ``--device nvidia.com/gpu=1``.
    Where none of them is there, as with AMD's ``--device /dev/dri``, all are.
    """
    cards = sorted(gpus, key=lambda info: info.gpu)
    named: list[str] = []
    for word, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        option, equals, value = word.partition("=")
        given = (value if equals else following).strip("\"'")
        if option == "--gpus":
            if given.isdigit():
                return cards[: int(given)]
            if not given.startswith("device="):
                return cards
            named += given.removeprefix("device=").split(",")
        elif option == "--device" and given.startswith("nvidia.com/gpu="):
            named.append(given.removeprefix("nvidia.com/gpu="))
    if not named or "all" in named:
        return cards
    given_cards = [found[0] for name in named if (found := _named(name.strip(), cards))]
    return [card for card in cards if card in given_cards]  # inside they stand in their own order
