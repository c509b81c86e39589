"""A card as a binding of its vendor offers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_dash.gpu.card import NotOffered, Quantity, ReadFailed
from gpu_dash.model.gpu import GpuInfo


@dataclass(frozen=True)
class LibraryCard:
    """What a card is, and the calls that read it."""

    info: GpuInfo
    fast: list[Quantity]
    slow: list[Quantity]


def quantity(call: str, read: Callable[[], Mapping[str, Any]]) -> Quantity:
    """A call that has failed when none of its fields is known: bindings say so without an error."""

    def known() -> Mapping[str, Any]:
        values = {field: value for field, value in read().items() if value is not None}
        if not values:
            raise ReadFailed("the binding gives no value")
        return values

    return Quantity(call, known)


def offered(*quantities: Quantity) -> list[Quantity]:
    """Those that give a value now: what a card does not give at the start, it does not have."""
    return [one for one in quantities if _gives(one)]


def _gives(one: Quantity) -> bool:
    try:
        one.read()
    except (NotOffered, ReadFailed):
        return False
    return True
