"""AMD cards through the files of the amdgpu driver in sysfs.

The driver's files are the one source that has everything: AMD's Python binding knows no
temperature, no clock and no throttle in any version, and its libraries abort on some chips. What
a chip does not have, the driver gives no file for.
"""

from __future__ import annotations

from pathlib import Path

from gpu_dash.gpu.amd_card import AmdCard, find_cards
from gpu_dash.gpu.amd_processes import holders, kfd_gpu_ids
from gpu_dash.gpu.backend import SourceAbsent, Sweep
from gpu_dash.gpu.processes import Holder
from gpu_dash.gpu.rounds import Rounds
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.gpu import GpuInfo

SYSFS = Path("/sys")


class AmdBackend:
    """All AMD cards of this host.

    Args:
        root: where sysfs is mounted.
        clock: gives the moments of the readings.
    """

    source = "amd"
    event_sources: tuple[str, ...] = ()
    event_sources_missing: tuple[str, ...] = ()

    def __init__(self, root: Path = SYSFS, clock: Clock | None = None) -> None:
        self._root = root
        self._clock = clock or SystemClock()
        self._cards: list[AmdCard] = []
        self._rounds = Rounds()
        self._gpu_of_id: dict[str, int] = {}

    @property
    def gpus(self) -> tuple[GpuInfo, ...]:
        """The cards, in the order of their PCI addresses, as AMD's tools count."""
        return tuple(card.info for card in self._cards)

    @property
    def detail(self) -> str:
        """What a card says in a form that is not known here."""
        return "; ".join(
            f"GPU {card.info.gpu}: {card.declined}" for card in self._cards if card.declined
        )

    def open(self) -> None:
        """Find the cards.

        Raises:
            SourceAbsent: there is no card of AMD's with its driver.
        """
        folders = find_cards(self._root)
        if not folders:
            raise SourceAbsent(
                f"no AMD card with the amdgpu driver under {self._root}/class/drm "
                "(docker: `--device /dev/kfd --device /dev/dri`; see `lsmod | grep amdgpu`)"
            )
        self._cards = [AmdCard(gpu, folder) for gpu, folder in enumerate(folders)]
        self._rounds = Rounds(self._cards, self._clock.monotonic(), hint="was amdgpu unloaded?")
        ids = kfd_gpu_ids(self._root)
        self._gpu_of_id = {
            ids[card.info.pci_bus_id]: card.info.gpu
            for card in self._cards
            if card.info.pci_bus_id in ids
        }

    def sweep(self) -> Sweep:
        """Read every card.

        Raises:
            GpuSourceError: no card has answered for a while.
        """
        return self._rounds.sweep(self._clock.monotonic())

    def processes(self) -> list[Holder]:
        """Who computes on the cards."""
        return list(holders(self._root, self._gpu_of_id))
