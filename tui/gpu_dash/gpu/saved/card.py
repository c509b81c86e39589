"""What a saved output says about one card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu_dash.gpu.values import kernel_bus_id, words
from gpu_dash.model.gpu import GpuInfo, GpuSample, GpuVendor
from gpu_dash.model.text import strip_controls

_OF_SAMPLE = frozenset(GpuSample.__struct_fields__) - {"gpu"}
_OF_INFO = frozenset(GpuInfo.__struct_fields__) - {"gpu", "vendor"}


@dataclass
class SavedCard:
    """One card as a text describes it, filled line by line.

    Facts are named as the fields of :class:`~gpu_dash.model.gpu.GpuSample` and
    :class:`~gpu_dash.model.gpu.GpuInfo`; those of a single tool have names of their own.
    """

    gpu: int
    vendor: GpuVendor
    facts: dict[str, Any] = field(default_factory=dict)

    def learn(self, name: str, value: Any) -> None:
        """Take a fact, unless it is missing or known already."""
        if value is not None and value != "" and self.facts.get(name) is None:
            self.facts[name] = value

    def learn_name(self, value: Any) -> None:
        """Take the card's name; an identifier in hex is none."""
        name = words(value)
        if name and not name.lower().startswith("0x"):
            self.learn("name", strip_controls(name))

    def learn_bus_id(self, value: Any) -> None:
        """Take the PCI address."""
        if ":" in words(value):
            self.learn("pci_bus_id", kernel_bus_id(strip_controls(words(value))))

    def learn_from(
        self,
        source: Mapping[str, Any],
        facts: Mapping[str, tuple[Callable[[Any], Any], tuple[str, ...]]],
    ) -> None:
        """Take facts by a table: the reader of the value, and the names it has in the source,
        the preferred one first."""
        for name, (read, names) in facts.items():
            for key in names:
                if key in source:
                    self.learn(name, read(source[key]))

    @property
    def info(self) -> GpuInfo:
        """What does not change."""
        facts = {name: self.facts[name] for name in _OF_INFO if name in self.facts}
        return GpuInfo(gpu=self.gpu, vendor=self.vendor, **{"name": "", **facts})

    @property
    def sample(self) -> GpuSample:
        """The reading, with what follows from it: AMD's temperature, the headroom."""
        facts = {name: self.facts[name] for name in _OF_SAMPLE if name in self.facts}
        if self.vendor is GpuVendor.AMD and "temperature_celsius" not in facts:
            facts["temperature_celsius"] = self.facts.get(
                "edge_temperature_celsius", self.facts.get("hotspot_temperature_celsius")
            )
        temperature = facts.get("temperature_celsius")
        if "headroom_celsius" not in facts and temperature is not None:
            facts["headroom_celsius"] = self._headroom(temperature)
        return GpuSample(gpu=self.gpu, **facts)

    @property
    def other_facts(self) -> dict[str, Any]:
        """What only some tools say."""
        known = _OF_SAMPLE | _OF_INFO
        return {name: value for name, value in self.facts.items() if name not in known}

    def _headroom(self, temperature: float) -> float | None:
        if self.vendor is not GpuVendor.AMD:
            limit = self.info.nearest_limit_celsius
            return None if limit is None else limit - temperature
        distances = [
            self.facts[f"{sensor}_slowdown_celsius"] - self.facts[f"{sensor}_temperature_celsius"]
            for sensor in ("edge", "hotspot", "memory")
            if f"{sensor}_slowdown_celsius" in self.facts
            and f"{sensor}_temperature_celsius" in self.facts
        ]
        return min(distances, default=None)
