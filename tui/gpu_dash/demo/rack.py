"""The cards of a simulated host under one tensor-parallel server.

Tensor parallelism makes the cards wait for each other in every layer, so the slowest clock sets
the pace of all: the fast ones finish early and spin, busy by the driver's count and drawing
little. That is the picture by which one slow or stuck card is found, and the rack reproduces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpu_dash.demo.thermal import Card, CardSpec

WAITING_ACTIVITY = 0.08
"""How hard a card works that waits in a collective: it polls."""

_GOOD_AIR = 0.054
_BAD_AIR = 0.092
"""Degrees per watt. With bad air the card stays cool enough at half load and not at full load."""
_SPREAD = (1.0, 1.05, 0.97, 1.02)
"""No two cards cool alike."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the server does with the cards at this moment."""

    intensity: float
    """0 to 1: how hard a card works that does not wait for another."""


def card_specs(count: int, *, hot_gpu: int | None, time_scale: float) -> tuple[CardSpec, ...]:
    """The cards of a host of which one, ``hot_gpu``, gets worse air than the others."""
    specs = []
    for gpu in range(count):
        resistance = _BAD_AIR if gpu == hot_gpu else _GOOD_AIR * _SPREAD[gpu % len(_SPREAD)]
        spec = replace(CardSpec(), thermal_resistance_celsius_per_watt=resistance)
        specs.append(spec.hastened(time_scale))
    return tuple(specs)


class Rack:
    """All cards of the host; the first ``tensor_parallel_size`` of them work for the server."""

    def __init__(self, specs: tuple[CardSpec, ...], tensor_parallel_size: int) -> None:
        self.cards = tuple(Card(spec) for spec in specs)
        self._workers = range(tensor_parallel_size)
        self._lost: set[int] = set()

    @property
    def clock_ratio(self) -> float:
        """The slowest clock among the working cards, as a share of the full clock."""
        return min(
            self.cards[gpu].sm_clock_mhz / self.cards[gpu].spec.sm_clock_max_mhz
            for gpu in self._workers
        )

    def lose(self, gpu: int) -> None:
        """The card falls off the bus: it answers nothing any more."""
        self._lost.add(gpu)

    def advance(self, elapsed_s: float, work: Work | None, stuck_gpu: int | None = None) -> None:
        """Let time pass under a constant load.

        Args:
            elapsed_s: how much time.
            work: what the server does; ``None`` when it has nothing to do.
            stuck_gpu: the card whose process hangs while the others wait for it.
        """
        pace = self.clock_ratio
        for gpu, card in enumerate(self.cards):
            activity = busy = 0.0
            if work is not None and gpu in self._workers:
                if stuck_gpu is None:
                    own_pace = card.sm_clock_mhz / card.spec.sm_clock_max_mhz
                    computing = pace / own_pace
                    activity = work.intensity * computing + WAITING_ACTIVITY * (1 - computing)
                    busy = 1.0
                elif gpu != stuck_gpu:
                    activity, busy = WAITING_ACTIVITY, 1.0
            card.advance(elapsed_s, activity=activity, busy=busy)

    def document(self) -> Mapping[str, object]:
        """What ``GET /sim/gpus`` says: the fields of ``GpuInfo`` and ``GpuSample`` by name.

        A card that is lost keeps its identity and has an empty sample.
        """
        return {"gpus": [self._describe(gpu, card) for gpu, card in enumerate(self.cards)]}

    def _describe(self, gpu: int, card: Card) -> Mapping[str, object]:
        lost = gpu in self._lost
        return {
            "gpu": gpu,
            "name": card.spec.name,
            "uuid": f"GPU-51000000-0000-4000-8000-{gpu:012x}",
            "pci_bus_id": pci_bus_id(gpu),
            "limits": _limits(card.spec),
            "sample": {"gpu": gpu} if lost else _sample(gpu, card),
            "lost": lost,
        }


def pci_bus_id(gpu: int) -> str:
    """The PCI address of a simulated card, as the kernel writes it."""
    return f"0000:{gpu + 1:02x}:00.0"


def _limits(spec: CardSpec) -> Mapping[str, object]:
    return {
        "max_operating_temperature_celsius": spec.max_operating_temperature_celsius,
        "slowdown_temperature_celsius": spec.slowdown_temperature_celsius,
        "shutdown_temperature_celsius": spec.shutdown_temperature_celsius,
        "power_limit_default_watts": spec.power_limit_watts,
        "power_limit_min_watts": spec.power_limit_min_watts,
        "power_limit_max_watts": spec.power_limit_max_watts,
        "sm_clock_max_mhz": spec.sm_clock_max_mhz,
        "memory_clock_max_mhz": spec.memory_clock_mhz,
        "memory_total_bytes": spec.memory_total_bytes,
    }


def _sample(gpu: int, card: Card) -> Mapping[str, object]:
    """One reading, rounded as NVML rounds: whole degrees and MHz, milliwatts, millijoules."""
    spec = card.spec
    temperature = float(round(card.temperature_celsius))
    return {
        "gpu": gpu,
        "temperature_celsius": temperature,
        "headroom_celsius": spec.max_operating_temperature_celsius - temperature,
        "power_watts": round(card.power_watts, 3),
        "power_limit_watts": spec.power_limit_watts,
        "energy_joules": round(card.energy_joules, 3),
        "sm_clock_mhz": card.sm_clock_mhz,
        "memory_clock_mhz": spec.memory_clock_mhz,
        "utilization_percent": card.utilization_percent,
        "memory_used_bytes": spec.memory_used_bytes,
        "memory_total_bytes": spec.memory_total_bytes,
        "throttle_reasons": list(card.throttle_reasons),
        "throttle_thermal_s": round(card.throttle_thermal_s, 6),
        "throttle_power_s": round(card.throttle_power_s, 6),
    }
