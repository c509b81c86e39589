"""What the driver records or counts by itself between two of our reads."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from gpu_dash.gpu.nvml_driver import NothingNew, NvmlDriver
from gpu_dash.gpu.nvml_fields import Field, number_in, read_fields

_ALL_LINKS = 0xFFFF_FFFF
_NVLINK_TX_KIB = 138
_NVLINK_RX_KIB = 139
_PCIE_TX_BYTES = 197
_PCIE_RX_BYTES = 198


class PowerRecord:
    """Peak and mean of the power since the read before, of the 50 samples a second that the driver
    keeps.

    The power that is polled is an average over a second, which hides what trips a limit and trails
    what the card draws.
    """

    def __init__(self, driver: NvmlDriver, handle: Any) -> None:
        self._driver = driver
        self._handle = handle
        self._newest_us = 0

    def __call__(self) -> Mapping[str, Any]:
        nvml = self._driver.nvml
        try:
            kind, samples = self._driver.call(
                "nvmlDeviceGetSamples", self._handle, nvml.NVML_TOTAL_POWER_SAMPLES, self._newest_us
            )
        except NothingNew:
            samples, kind = [], 0
        new = [sample for sample in samples if sample.timeStamp > self._newest_us]
        self._newest_us = max((sample.timeStamp for sample in new), default=self._newest_us)
        numbers = (number_in(sample.sampleValue, kind) for sample in new)
        watts = [milliwatts / 1000 for milliwatts in numbers if milliwatts is not None]
        if not watts:
            return {"power_peak_watts": None, "power_mean_watts": None}
        return {"power_peak_watts": max(watts), "power_mean_watts": fmean(watts)}


class ByteCounters:
    """Bytes over PCIe and over all NVLinks.

    The call for the PCIe throughput would measure for 20 ms; these are read in microseconds.
    """

    def __init__(self, driver: NvmlDriver, handle: Any) -> None:
        self._driver = driver
        self._handle = handle
        self._fields: list[Field] = [
            _PCIE_TX_BYTES,
            _PCIE_RX_BYTES,
            (_NVLINK_TX_KIB, _ALL_LINKS),
            (_NVLINK_RX_KIB, _ALL_LINKS),
        ]

    def __call__(self) -> Mapping[str, Any]:
        values = read_fields(self._driver, self._handle, self._fields)
        return {
            "pcie_tx_bytes": _whole(values.get(_PCIE_TX_BYTES)),
            "pcie_rx_bytes": _whole(values.get(_PCIE_RX_BYTES)),
            "nvlink_tx_bytes": _whole(values.get(_NVLINK_TX_KIB), 1024),
            "nvlink_rx_bytes": _whole(values.get(_NVLINK_RX_KIB), 1024),
        }


def _whole(value: float | None, factor: int = 1) -> int | None:
    return None if value is None else int(value) * factor
