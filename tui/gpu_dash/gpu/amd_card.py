"""One AMD card: its folder in sysfs, what the driver offers there, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpu_dash.gpu.amd_files import (
    SENSORS,
    busy_percent,
    counted,
    current_clock_mhz,
    hertz_as_mhz,
    highest_clock_mhz,
    microwatts,
    millidegrees,
)
from gpu_dash.gpu.amd_table import MetricsTable
from gpu_dash.gpu.backend import Reading
from gpu_dash.gpu.card import CardLost, NotOffered, PolledCard, Quantity, ReadFailed
from gpu_dash.model.events import GpuReadFailed
from gpu_dash.model.gpu import GpuInfo, GpuVendor
from gpu_dash.model.text import one_line, strip_controls

VENDOR = "0x1002"
TWO_DIES = ("0x7408", "0x740c")
"""MI250X and MI250: two devices on one card, of which the first answers for the power of both;
the second says 0 W."""
_NAMES = {
    "0x66a1": "AMD Instinct MI50",
    "0x738c": "AMD Instinct MI100",
    "0x7408": "AMD Instinct MI250X",
    "0x740c": "AMD Instinct MI250",
    "0x740f": "AMD Instinct MI210",
    "0x74a0": "AMD Instinct MI300A",
    "0x74a1": "AMD Instinct MI300X",
    "0x74b5": "AMD Instinct MI300X VF",
}
_CARD = re.compile(r"card\d+$")


def find_cards(root: Path) -> list[Path]:
    """Device folders of AMD's cards that have the amdgpu driver, by PCI address.

    Args:
        root: where sysfs is mounted.
    """
    folders = set()
    for card in (root / "class" / "drm").glob("card*"):
        device = card / "device"
        if _CARD.match(card.name) and _text(device / "vendor") == VENDOR and _hwmon(device):
            folders.add(device.resolve())
    return sorted(folders, key=lambda folder: folder.name)


class AmdCard:
    """A card that is read file by file.

    Args:
        gpu: its index.
        folder: its device folder, whose name is the PCI address.
    """

    def __init__(self, gpu: int, folder: Path) -> None:
        self._folder = folder
        self._hwmon = _hwmon(folder) or folder
        self._device_id = _text(folder / "device")
        self._sensors = self._find_sensors()
        self.info = self._read_info(gpu)
        self._distances: dict[str, float] = {}
        self._table = MetricsTable(folder / "gpu_metrics", self._read_bytes)
        fast, slow = self._quantities()
        self._polled = PolledCard(gpu, fast, slow, limit_celsius=None)

    @property
    def gpu(self) -> int:
        """Its index."""
        return self.info.gpu

    @property
    def failure(self) -> str:
        """A file that cannot be read and why."""
        return self._polled.failure

    @property
    def declined(self) -> str:
        """Why the card's metrics table is not read; empty where it is, or there is none."""
        return self._table.declined

    def poll(self, at: float, *, slow: bool) -> tuple[Reading | None, list[GpuReadFailed]]:
        """Read what is due; as :meth:`gpu_dash.gpu.card.PolledCard.poll`."""
        self._table.at = at
        return self._polled.poll(at, slow=slow)

    # -- what there is ---------------------------------------------------------------------------

    def _find_sensors(self) -> dict[str, str]:
        """Our name of each temperature sensor → the driver's number."""
        found = {}
        for label in sorted(self._hwmon.glob("temp*_label")):
            sensor = SENSORS.get(_text(label))
            if sensor is not None:
                found[sensor] = label.name.removesuffix("_label")
        return found

    def _read_info(self, gpu: int) -> GpuInfo:
        sensor = self._sensors.get("edge", self._sensors.get("hotspot", "temp1"))
        unique_id = _text(self._folder / "unique_id")
        name = _text(self._folder / "product_name")
        return GpuInfo(
            gpu=gpu,
            name=strip_controls(name) or _NAMES.get(self._device_id, f"AMD GPU {self._device_id}"),
            uuid=f"GPU-{strip_controls(unique_id)}" if unique_id else "",
            pci_bus_id=self._folder.name,
            vendor=GpuVendor.AMD,
            slowdown_temperature_celsius=self._once(f"{sensor}_crit", millidegrees),
            shutdown_temperature_celsius=self._once(f"{sensor}_emergency", millidegrees),
            power_limit_default_watts=self._once("power1_cap_default", microwatts) or None,
            power_limit_min_watts=self._once("power1_cap_min", microwatts),
            power_limit_max_watts=self._once("power1_cap_max", microwatts) or None,
            sm_clock_max_mhz=highest_clock_mhz(_text(self._folder / "pp_dpm_sclk")),
            memory_clock_max_mhz=highest_clock_mhz(_text(self._folder / "pp_dpm_mclk")),
            memory_total_bytes=counted(_text(self._folder / "mem_info_vram_total")),
        )

    def _once(self, file: str, read: Callable[[str], float | None]) -> float | None:
        return read(_text(self._hwmon / file))

    # -- what is read ----------------------------------------------------------------------------

    def _quantities(self) -> tuple[list[Quantity], list[Quantity]]:
        folder, hwmon = self._folder, self._hwmon
        fast = [self._temperature(sensor) for sensor in ("edge", "hotspot", "memory")]
        fast += [
            self._first_of("power_watts", (hwmon / "power1_average", hwmon / "power1_input"),
                           self._power),
            self._clock("sm_clock_mhz", hwmon / "freq1_input", folder / "pp_dpm_sclk"),
        ]  # fmt: skip
        slow = [
            self._file("power_limit_watts", hwmon / "power1_cap", _limit),
            self._clock("memory_clock_mhz", hwmon / "freq2_input", folder / "pp_dpm_mclk"),
            self._file("utilization_percent", folder / "gpu_busy_percent", busy_percent),
            self._file("memory_utilization_percent", folder / "mem_busy_percent", busy_percent),
            self._file("memory_used_bytes", folder / "mem_info_vram_used", counted),
            self._file("memory_total_bytes", folder / "mem_info_vram_total", counted),
            self._file("fan_percent", hwmon / "pwm1", _fan_percent),
        ]
        table = Quantity("gpu_metrics", self._table.read)
        (slow if self._table.counts_residencies else fast).append(table)
        return [one for one in fast if one is not None], [one for one in slow if one is not None]

    def _temperature(self, sensor: str) -> Quantity | None:
        number = self._sensors.get(sensor)
        if number is None:
            return None
        path = self._hwmon / f"{number}_input"
        critical = self._once(f"{number}_crit", millidegrees)
        fields = [f"{sensor}_temperature_celsius"] if sensor != "edge" else []
        if sensor == "edge" or (sensor == "hotspot" and "edge" not in self._sensors):
            fields.append("temperature_celsius")

        def read() -> Mapping[str, Any]:
            celsius = self._value(path, millidegrees)
            values = dict.fromkeys(fields, celsius)
            if critical is not None:
                self._distances[sensor] = critical - celsius
                values["headroom_celsius"] = min(self._distances.values())
            return values

        return Quantity(path.name, read)

    def _power(self, text: str) -> float | None:
        power = microwatts(text)
        if power == 0 and self._device_id in TWO_DIES:
            raise NotOffered("power of the second die")
        return power

    def _clock(self, field: str, hertz: Path, levels: Path) -> Quantity | None:
        return self._file(field, hertz, hertz_as_mhz) or self._file(
            field, levels, current_clock_mhz
        )

    def _first_of(
        self, field: str, paths: tuple[Path, ...], read: Callable[[str], float | None]
    ) -> Quantity | None:
        return next((found for path in paths if (found := self._file(field, path, read))), None)

    def _file(self, field: str, path: Path, read: Callable[[str], float | None]) -> Quantity | None:
        """A file that gives one field; ``None`` where the driver has no such file."""
        if not path.exists():
            return None
        return Quantity(path.name, lambda: {field: self._value(path, read)})

    def _value(self, path: Path, read: Callable[[str], float | None]) -> float:
        text = self._read_bytes(path).decode("ascii", "replace")
        value = read(text)
        if value is None:
            raise ReadFailed(f"{path.name} says {one_line(text)[:40]!r}, which is no such value")
        return value

    def _read_bytes(self, path: Path) -> bytes:
        """A file of the card.

        Raises:
            CardLost: the card's whole folder is gone.
            ReadFailed: the file cannot be read.
        """
        try:
            return path.read_bytes()
        except OSError as error:
            if not self._folder.exists():
                raise CardLost(f"{self._folder.name} is no longer on the bus") from error
            raise ReadFailed(f"{error.strerror or error}") from error


def _limit(text: str) -> float | None:
    """A power limit. A limit of nothing is none: the second die of a card says so."""
    limit = microwatts(text)
    if limit == 0:
        raise NotOffered("power limit")
    return limit


def _fan_percent(text: str) -> float | None:
    """The fan's duty cycle, which the driver gives as 0 to 255."""
    duty = counted(text)
    return None if duty is None else duty / 255 * 100


def _hwmon(device: Path) -> Path | None:
    """The folder of the card's sensors."""
    folders = sorted((device / "hwmon").glob("hwmon*"))
    return next((folder for folder in folders if _text(folder / "name") == "amdgpu"), None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
