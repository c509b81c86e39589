"""AMD cards through a Python binding of AMD's, where sysfs does not show them.

Both bindings are imported only here, in the sampler: their libraries print, log, and abort on some
chips. Neither gives throttle reasons bit by bit, so sysfs comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpu_dash.gpu import amdsmi_cards, pyrsmi_cards
from gpu_dash.gpu.backend import SourceAbsent, Sweep
from gpu_dash.gpu.card import PolledCard
from gpu_dash.gpu.library_card import LibraryCard
from gpu_dash.gpu.rounds import Rounds
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.gpu import GpuInfo

BINDINGS: Mapping[str, Callable[[], Sequence[LibraryCard]]] = {
    "amdsmi": amdsmi_cards.find_cards,
    "pyrsmi": pyrsmi_cards.find_cards,
}
"""In the order of preference: amdsmi knows temperatures, clocks and limits, pyrsmi does not."""


class AmdLibraryBackend:
    """The cards that a binding of AMD's finds.

    Args:
        clock: gives the moments of the readings.
    """

    source = "amd"
    event_sources: tuple[str, ...] = ()
    event_sources_missing: tuple[str, ...] = ()

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._rounds = Rounds()
        self.gpus: tuple[GpuInfo, ...] = ()
        self.detail = ""

    def open(self) -> None:
        """Find a binding that finds cards.

        Raises:
            SourceAbsent: neither is installed, or none finds a card.
        """
        problems = []
        for name, find in BINDINGS.items():
            try:
                found = find()
            except SourceAbsent as error:
                problems.append(f"{name}: {error}")
                continue
            self.gpus = tuple(card.info for card in found)
            cards = [
                PolledCard(card.info.gpu, card.fast, card.slow, card.info.nearest_limit_celsius)
                for card in found
            ]
            self._rounds = Rounds(cards, self._clock.monotonic())
            self.detail = f"read through {name}, as sysfs shows no card: no throttle reasons"
            return
        raise SourceAbsent("; ".join(problems))

    def sweep(self) -> Sweep:
        """Read every card.

        Raises:
            GpuSourceError: no card has answered for a while.
        """
        return self._rounds.sweep(self._clock.monotonic())

    def processes(self) -> None:
        """Neither binding is asked for them."""
