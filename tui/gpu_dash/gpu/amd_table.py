"""The metrics table of a card: throttling, stack temperatures and energy, in one read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpu_dash.gpu.amd_throttle import ResidencyTime, amd_throttle_reasons
from gpu_dash.gpu.card import COUNTERS, NotOffered, ReadFailed
from gpu_dash.gpu.gpu_metrics import GpuMetrics, UnknownRevision, decode_gpu_metrics

ENERGY_UNIT_JOULES = 15.259e-6
BUSY_PERCENT = 10
"""Below this a card that counts throttled time at rest is not believed."""


class MetricsTable:
    """Reads ``gpu_metrics``; a layout that is not known is declined once, in words.

    Args:
        path: the file.
        read_bytes: reads a file of the card and raises what its failure means.
    """

    def __init__(self, path: Path, read_bytes: Callable[[Path], bytes]) -> None:
        self.at = 0.0
        """Moment of the next read."""
        self.declined = ""
        self.counts_residencies = False
        """Throttled time is counted, so a slow pace loses nothing."""
        self._path = path
        self._read_bytes = read_bytes
        self._residency = ResidencyTime()
        if path.exists():
            self._look()

    def read(self) -> Mapping[str, Any]:
        """What the table says now.

        Raises:
            NotOffered: there is no table, or its layout is not known.
            ReadFailed: it cannot be read.
        """
        if self.declined or not self._path.exists():
            raise NotOffered("gpu_metrics")
        try:
            metrics = decode_gpu_metrics(self._read_bytes(self._path))
        except UnknownRevision as error:
            raise ReadFailed(str(error)) from error
        values: dict[str, Any] = {}
        energy = metrics.number("energy_accumulator")
        if energy:
            values["energy_joules"] = energy * ENERGY_UNIT_JOULES
        stacks = metrics.values.get("temperature_hbm")
        if isinstance(stacks, tuple) and any(stacks):
            values["hbm_temperatures_celsius"] = tuple(float(one) for one in stacks if one)
        return {**values, **self._throttling(metrics)}

    def _look(self) -> None:
        """Learn the layout. A table that cannot be read now may be later."""
        try:
            metrics = decode_gpu_metrics(self._read_bytes(self._path))
        except UnknownRevision as error:
            self.declined = f"{error}: no throttle reasons and no energy"
        except ReadFailed:
            return
        else:
            self.counts_residencies = metrics.number("accumulation_counter") is not None

    def _throttling(self, metrics: GpuMetrics) -> dict[str, Any]:
        bits = metrics.number("indep_throttle_status")
        if bits is not None:
            hotspot = metrics.number("temperature_hotspot")
            return {"throttle_reasons": amd_throttle_reasons(bits, hotspot)}
        busy = (metrics.number("average_gfx_activity") or 0) >= BUSY_PERCENT
        throttled = self._residency.add(self.at, metrics, busy=busy)
        if throttled is None:
            return {}
        reasons, counters = throttled
        return {"throttle_reasons": reasons, COUNTERS: counters}
