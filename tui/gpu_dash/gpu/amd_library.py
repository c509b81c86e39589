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
from gpu_dash.gpu.silence import Silence
from gpu_dash.gpu.slow_turns import SlowTurns
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.errors import GpuSourceError
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
        self._cards: list[PolledCard] = []
        self._turns = SlowTurns(())
        self._silence = Silence(0.0)
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
            self._cards = [
                PolledCard(card.info.gpu, card.fast, card.slow, card.info.nearest_limit_celsius)
                for card in found
            ]
            self._turns = SlowTurns(info.gpu for info in self.gpus)
            self._silence = Silence(self._clock.monotonic())
            self.detail = f"read through {name}, as sysfs shows no card: no throttle reasons"
            return
        raise SourceAbsent("; ".join(problems))

    def sweep(self) -> Sweep:
        """Read every card.

        Raises:
            GpuSourceError: no card has answered for a while.
        """
        at = self._clock.monotonic()
        readings, failures = [], []
        for card in self._cards:
            reading, new = card.poll(at, slow=self._turns.is_due(card.gpu, at))
            failures += new
            if reading is not None:
                readings.append(reading)
        if self._silence.is_too_long(at, answered=bool(readings)):
            raise GpuSourceError(f"no AMD card answers any more: {self._cards[0].failure}")
        return Sweep(at, tuple(readings), tuple(failures))

    def processes(self) -> None:
        """Neither binding is asked for them."""
