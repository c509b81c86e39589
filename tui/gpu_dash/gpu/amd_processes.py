"""Which processes compute on AMD's cards, as the kernel's compute driver (KFD) tells in sysfs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpu_dash.gpu.amd_files import counted
from gpu_dash.gpu.processes import Holder

_KFD = "class/kfd/kfd"
_PROPERTY = re.compile(r"^(\w+) (\d+)$", re.MULTILINE)


def kfd_gpu_ids(root: Path) -> dict[str, str]:
    """PCI address → the name that KFD gives to a card.

    Args:
        root: where sysfs is mounted.
    """
    found = {}
    for node in (root / _KFD / "topology/nodes").glob("*"):
        gpu_id = _text(node / "gpu_id")
        properties = dict(_PROPERTY.findall(_text(node / "properties")))
        if gpu_id and gpu_id != "0" and "location_id" in properties:
            location, domain = int(properties["location_id"]), int(properties.get("domain", "0"))
            bus, device, function = location >> 8, location >> 3 & 0x1F, location & 7
            found[f"{domain:04x}:{bus:02x}:{device:02x}.{function}"] = gpu_id
    return found


def holders(root: Path, gpu_of_id: Mapping[str, int]) -> Iterator[Holder]:
    """The processes of all cards.

    Args:
        root: where sysfs is mounted.
        gpu_of_id: our index of each card by KFD's name.
    """
    for folder in (root / _KFD / "proc").glob("[0-9]*"):
        for gpu_id, gpu in gpu_of_id.items():
            memory = counted(_text(folder / f"vram_{gpu_id}"))
            if memory:
                yield Holder(gpu, int(folder.name), memory)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
