"""A fake of the amdgpu driver's part of sysfs, which AMD's own library reads too.

Values may change while somebody reads: each file is replaced in one step.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.fakes.amdgpu.chips import Chip
from tests.fakes.amdgpu.metrics import pack


class AmdTree:
    """A folder that can stand in for ``/sys``.

    Args:
        root: the folder, which is made.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._put("module/amdgpu/initstate", "live\n")
        (root / "class/drm").mkdir(parents=True)
        (root / "devices/system").mkdir(parents=True)
        (root / "class/kfd/kfd/topology/nodes").mkdir(parents=True)
        self._cards = 0

    def add(self, chip: Chip, *, drm: int | None = None, second_die: bool = False) -> AmdFiles:
        """Add an idle card.

        Args:
            chip: which one.
            drm: number of its ``cardN``; the next one if it does not matter.
            second_die: it shares a card with the one before, which answers for the power.
        """
        number = self._cards if drm is None else drm
        self._cards = number + 1
        bus = 3 + number
        address = f"0000:{bus:02x}:00.0"
        device = f"devices/pci0000:00/{address}"
        self._put(f"{device}/drm/card{number}/dev", f"226:{number}\n")
        (self.root / device / f"drm/card{number}/device").symlink_to(f"../../../{address}")
        link = self.root / f"class/drm/card{number}"
        link.symlink_to(f"../../{device}/drm/card{number}")
        node = f"class/kfd/kfd/topology/nodes/{number + 1}"
        self._put(f"{node}/gpu_id", f"{10000 + number}\n")
        (self.root / node / "io_links").mkdir()
        self._put(
            f"{node}/properties",
            f"location_id {bus << 8}\ndomain 0\nhive_id 0\nsimd_arrays_per_engine 1\n"
            "array_count 32\ncu_per_simd_array 16\n",
        )
        card = AmdFiles(self.root / device, number + 4)
        card.fill(chip, number, second_die=second_die)
        return card

    def add_other_vendor(self, drm: int) -> None:
        """Add a display of another vendor, as a server's management controller has."""
        self._put(f"devices/pci0000:00/0000:01:00.{drm}/vendor", "0x1a03\n")
        folder = self.root / f"class/drm/card{drm}"
        folder.mkdir()
        (folder / "device").symlink_to(f"../../../devices/pci0000:00/0000:01:00.{drm}")
        self._cards = drm + 1

    def _put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


class AmdFiles:
    """The files of one card.

    Args:
        folder: its device folder.
        hwmon: number of its sensors' folder.
    """

    def __init__(self, folder: Path, hwmon: int) -> None:
        self.folder = folder
        self._hwmon = folder / f"hwmon/hwmon{hwmon}"
        self._hwmon.mkdir(parents=True)

    def write(self, name: str, value: str | bytes | int) -> None:
        """Replace a file, of the device or of its sensors, whichever has it."""
        path = self.path(name)
        text = value if isinstance(value, bytes) else f"{value}\n".encode()
        new = path.with_name(f".{path.name}.new")
        new.write_bytes(text)
        os.replace(new, path)

    def remove(self, name: str) -> None:
        """Take a file away."""
        self.path(name).unlink()

    def vanish(self) -> None:
        """Take the card off the bus."""
        shutil.rmtree(self.folder)

    def path(self, name: str) -> Path:
        """Where a file is."""
        is_sensor = name.startswith(("temp", "power1", "freq", "in0", "fan", "pwm"))
        return (self._hwmon if is_sensor or name == "name" else self.folder) / name

    def fill(self, chip: Chip, number: int, *, second_die: bool) -> None:
        """Write all files of an idle card."""
        files: dict[str, str | int] = {
            "vendor": "0x1002", "device": chip.device_id, "vbios_version": "113-FAKE-001",
            "unique_id": f"{0xabc0 + number:016x}", "product_name": "", "name": "amdgpu",
            "gpu_busy_percent": 0, "mem_busy_percent": 0,
            "mem_info_vram_total": chip.vram_bytes, "mem_info_vram_used": 10854400,
            "revision": "0x00", "subsystem_device": "0x0c34", "subsystem_vendor": "0x1002",
            "power1_cap": 0 if second_die else chip.power_cap_watts * 1_000_000,
            "power1_cap_default": chip.power_cap_watts * 1_000_000,
            "power1_cap_max": chip.power_cap_watts * 1_000_000, "power1_cap_min": 0,
            chip.power_file: 0 if second_die else 42_000_000,
        }  # fmt: skip
        for name, value in files.items():
            self.write(name, value)
        for place, label in ((1, "edge"), (2, "junction"), (3, "mem")):
            if label in chip.temperatures:
                self.write(f"temp{place}_label", label)
                self.write(f"temp{place}_input", 40_000 + place * 1000)
                self.write(f"temp{place}_crit", 100_000 - place * 2000)
                self.write(f"temp{place}_emergency", 105_000)
        if chip.has_voltage:
            self.write("in0_label", "vddgfx")
            self.write("in0_input", 700)
        self.set_clock("sclk", chip.sclk_mhz, 0)
        self.set_clock("mclk", chip.mclk_mhz, 0)
        self.write("gpu_metrics", self.table(chip))

    def set_clock(self, clock: str, levels: tuple[int, ...], level: int) -> None:
        """Choose the level that a clock runs at."""
        lines = [f"{at}: {mhz}Mhz{' *' * (at == level)}" for at, mhz in enumerate(levels)]
        self.write(f"pp_dpm_{clock}", "\n".join(lines))
        place = 1 if clock == "sclk" else 2
        self.write(f"freq{place}_label", clock)
        self.write(f"freq{place}_input", levels[level] * 1_000_000)

    def table(self, chip: Chip, **values: int) -> bytes:
        """The metrics table of an idle card, with other values where given."""
        if chip.metrics == "v1_6":
            idle = dict.fromkeys(
                ("accumulation_counter", "prochot_residency_acc", "ppt_residency_acc",
                 "socket_thm_residency_acc", "vr_thm_residency_acc", "hbm_thm_residency_acc",
                 "average_gfx_activity"),
                0,
            )  # fmt: skip
            return pack("v1_6", **{"temperature_hotspot": 42, **idle, **values})
        idle = {"temperature_hotspot": 42, "throttle_status": 0, "indep_throttle_status": 0}
        return pack(chip.metrics, **{**idle, **values})
