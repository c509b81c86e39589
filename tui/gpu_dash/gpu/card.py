"""One card as a set of quantities that are read at their own pace.

A vendor's back end says which call gives which fields and how often; what happens when a call
is not offered, fails, comes back, or says that the card is gone is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_dash.gpu.backend import Reading
from gpu_dash.model.events import GpuReadFailed
from gpu_dash.model.gpu import GpuSample

COUNTERS = "counters"
"""Key under which a quantity gives :class:`~gpu_dash.gpu.backend.ThrottleCounters`."""
LOST_RETRY_S = 5.0
"""How often a lost card is asked whether it is back."""


class NotOffered(Exception):
    """The card or the driver does not have this value."""


class ReadFailed(Exception):
    """A value that should be there could not be read."""


class CardLost(ReadFailed):
    """The driver says that the card is gone."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A driver call and the fields of :class:`~gpu_dash.model.gpu.GpuSample` that it gives."""

    call: str
    """Named when it fails."""
    read: Callable[[], Mapping[str, Any]]
    """Raises :class:`NotOffered`, :class:`ReadFailed` or :class:`CardLost`."""


class PolledCard:
    """Reads one card and keeps the newest value of each field.

    Args:
        gpu: its index.
        fast: what is read in every sweep; the first of them is what a lost card is asked.
        slow: what is read when its turn comes.
        limit_celsius: the nearest temperature limit, for the headroom; ``None``: a quantity
            gives the headroom, or nobody knows it.
        rare: what is read when its turn comes, seldom.
    """

    def __init__(
        self,
        gpu: int,
        fast: Iterable[Quantity],
        slow: Iterable[Quantity],
        limit_celsius: float | None,
        rare: Iterable[Quantity] = (),
    ) -> None:
        self.gpu = gpu
        self._fast = list(fast)
        self._slow = list(slow)
        self._rare = list(rare)
        self._limit_celsius = limit_celsius
        self._values: dict[str, Any] = {}
        self._gives: dict[str, frozenset[str]] = {}
        self._failing: dict[str, str] = {}
        self._lost_at: float | None = None
        self._answered = False
        self._energy_read_at = 0.0

    @property
    def failure(self) -> str:
        """A call that does not work and why; empty when all do."""
        return next((f"{call}: {error}" for call, error in self._failing.items()), "")

    def poll(
        self, at: float, *, slow: bool, rare: bool = False
    ) -> tuple[Reading | None, list[GpuReadFailed]]:
        """Read the fast quantities, and the slow and the rare ones if it is their turn.

        Returns:
            The reading, ``None`` if the card did not answer; and the failures that are new.
        """
        failures = self.read_fast(at)
        reading, others = self.read_others(at, slow=slow, rare=rare)
        return reading, failures + others

    def read_fast(self, at: float) -> list[GpuReadFailed]:
        """The first part of :meth:`poll`, which is done for all cards before the slow values of
        any of them: those of one card must not delay what is read of the next.

        Returns:
            The failures that are new.
        """
        self._answered = False
        self._values.pop(COUNTERS, None)
        if self._lost_at is not None:
            if at - self._lost_at < LOST_RETRY_S:
                return []
            self._lost_at = None
        return self._read(at, self._fast)

    def read_others(
        self, at: float, *, slow: bool, rare: bool
    ) -> tuple[Reading | None, list[GpuReadFailed]]:
        """The second part of :meth:`poll`, with its answer."""
        failures: list[GpuReadFailed] = []
        if self._lost_at is None:
            failures = self._read(at, [*(self._slow * slow), *(self._rare * rare)])
        answers = self._answered and self._lost_at is None
        return (self._reading(at) if answers else None), failures

    def _read(self, at: float, quantities: Iterable[Quantity]) -> list[GpuReadFailed]:
        failures: list[GpuReadFailed] = []
        for quantity in tuple(quantities):
            try:
                values = quantity.read()
            except NotOffered:
                self._drop(quantity)
                continue
            except ReadFailed as error:
                lost = isinstance(error, CardLost)
                failures += self._failed(at, quantity, str(error), lost=lost)
                if lost:
                    self._lost_at = at
                    break
                continue
            self._answered = True
            self._failing.pop(quantity.call, None)
            self._gives[quantity.call] = frozenset(values)
            self._values.update(values)
            if "energy_joules" in values:
                self._energy_read_at = at
        return failures

    def _reading(self, at: float) -> Reading:
        values = dict(self._values)
        if values.get("energy_joules") is not None and at > self._energy_read_at:
            values["energy_age_s"] = at - self._energy_read_at
        counters = values.pop(COUNTERS, None)
        temperature = values.get("temperature_celsius")
        if self._limit_celsius is not None and temperature is not None:
            values["headroom_celsius"] = self._limit_celsius - temperature
        return Reading(GpuSample(gpu=self.gpu, **values), counters)

    def _drop(self, quantity: Quantity) -> None:
        for quantities in (self._fast, self._slow, self._rare):
            if quantity in quantities:
                quantities.remove(quantity)

    def _failed(
        self, at: float, quantity: Quantity, error: str, *, lost: bool
    ) -> list[GpuReadFailed]:
        """Forget the values that this call gave; a failure is said once until it changes."""
        for field in self._gives.get(quantity.call, ()):
            self._values.pop(field, None)
        if self._failing.get(quantity.call) == error:
            return []
        self._failing[quantity.call] = error
        return [GpuReadFailed(at=at, gpu=self.gpu, call=quantity.call, error=error, lost=lost)]
