"""Listings of amdgpu's sysfs files (``path:line``, as ``grep ""`` writes them), lm-sensors'
output, and a decoded ``gpu_metrics`` as tools print it."""

from __future__ import annotations

import re

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
from gpu_dash.gpu.gpu_metrics import UnknownRevision, decode_gpu_metrics
from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.saved.metrics_names import NAMES, learn_metrics
from gpu_dash.gpu.values import celsius, count, limit_watts, number, unit, watts
from gpu_dash.model.gpu import GpuVendor

_LINE = re.compile(r"((?:\S*/)?[A-Za-z]\w*(?:\.hex)?):(.*)$")
_CARD = re.compile(r"(?:^|/)card(\d+)(?:/|$)")
_BUS_ID = re.compile(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d\b")
_FILES = re.compile(
    r"(temp\d+_\w+|freq\d+_\w+|power1_\w+|gpu_busy_percent|pp_dpm_\w+|gpu_metrics(\.hex)?"
    r"|mem_info_\w+)$"
)
_ADAPTER = re.compile(r"amdgpu-pci-([0-9a-f]{2})([0-9a-f]{2})", re.IGNORECASE)
_SENSOR_LINE = re.compile(r"(\w+):\s+(\S+(?: [A-Za-z]+)?)(.*)$")
_REMARK = re.compile(r"(crit|emerg|cap)\s*=\s*([+-]?[\d.]+)")
_METRIC = re.compile(r"\s*([a-z][a-z0-9_]+):\s*(\[.*?\]|\S+?),?\s*$")


def read_listing(text: str) -> list[SavedCard] | None:
    """Cards of a listing; ``None`` if the text is something else."""
    by_card: dict[str, dict[str, list[str]]] = {}
    bus_ids: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match is None:
            continue
        path, value = match[1], match[2]
        card = _CARD.search(path)
        name = path.rsplit("/", 1)[-1].removesuffix(".hex")
        key = "" if card is None else card[1]
        by_card.setdefault(key, {}).setdefault(name, []).append(value)
        if (bus_id := _BUS_ID.search(line)) is not None:
            bus_ids.setdefault(key, bus_id[0])
    cards = []
    for place, (key, lines) in enumerate(by_card.items()):
        if not any(_FILES.match(name) for name in lines):
            continue
        files = {name: "\n".join(of_file) for name, of_file in lines.items()}
        if files.get("vendor", "0x1002").strip() != "0x1002":
            continue
        card_of_files = _card(int(key) if key else place, files)
        card_of_files.learn_bus_id(bus_ids.get(key, ""))
        cards.append(card_of_files)
    return cards or None


def _card(gpu: int, files: dict[str, str]) -> SavedCard:
    card = SavedCard(gpu, GpuVendor.AMD)

    def file(name: str) -> str:
        return files.get(name, "")

    for place in range(1, 8):
        label = file(f"temp{place}_label").strip() or ("edge" if place == 1 else "")
        sensor = SENSORS.get(label)
        if sensor is None:
            continue
        card.learn(f"{sensor}_temperature_celsius", millidegrees(file(f"temp{place}_input")))
        card.learn(f"{sensor}_slowdown_celsius", millidegrees(file(f"temp{place}_crit")))
        card.learn(f"{sensor}_shutdown_celsius", millidegrees(file(f"temp{place}_emergency")))
    card.learn("power_average_watts", microwatts(file("power1_average")))
    card.learn("power_instant_watts", microwatts(file("power1_input")))
    card.learn("power_watts", card.facts.get("power_average_watts"))
    card.learn("power_watts", card.facts.get("power_instant_watts"))
    card.learn("power_limit_watts", microwatts(file("power1_cap")) or None)
    card.learn("power_limit_default_watts", microwatts(file("power1_cap_default")) or None)
    card.learn("power_limit_min_watts", microwatts(file("power1_cap_min")))
    card.learn("power_limit_max_watts", microwatts(file("power1_cap_max")) or None)
    for place, name, levels in ((1, "sm", "pp_dpm_sclk"), (2, "memory", "pp_dpm_mclk")):
        starred = current_clock_mhz(file(levels))
        card.learn(f"{name}_clock_mhz", hertz_as_mhz(file(f"freq{place}_input")))
        card.learn(f"{name}_clock_mhz", starred)
        card.learn(f"{name}_clock_max_mhz", highest_clock_mhz(file(levels)))
        card.learn(f"{levels}_current_mhz", starred)
    card.learn("utilization_percent", busy_percent(file("gpu_busy_percent")))
    card.learn("memory_utilization_percent", busy_percent(file("mem_busy_percent")))
    card.learn("memory_total_bytes", counted(file("mem_info_vram_total")))
    card.learn("memory_used_bytes", counted(file("mem_info_vram_used")))
    card.learn("gtt_total_bytes", counted(file("mem_info_gtt_total")))
    card.learn("gtt_used_bytes", counted(file("mem_info_gtt_used")))
    card.learn("fan_rpm", counted(file("fan1_input")))
    card.learn_name(file("product_name"))
    _learn_table(card, file("gpu_metrics"))
    return card


def _learn_table(card: SavedCard, in_hex: str) -> None:
    try:
        metrics = decode_gpu_metrics(bytes.fromhex("".join(in_hex.split())))
    except UnknownRevision as error:
        if in_hex:
            card.learn("gpu_metrics_declined", str(error))
            card.learn("gpu_metrics", {"format": error.revision or None, "size": error.size})
        return
    except ValueError:
        card.learn("gpu_metrics_declined", "gpu_metrics is not in hex")
        return
    learn_metrics(card, metrics.values)
    card.learn("gpu_metrics", {"format": metrics.format, "size": metrics.size, **metrics.values})


def read_sensors(text: str) -> list[SavedCard] | None:
    """Cards of ``sensors``; ``None`` if the text names no amdgpu adapter."""
    cards: list[SavedCard] = []
    sensor = ""
    for line in text.splitlines():
        adapter = _ADAPTER.match(line)
        if adapter is not None:
            cards.append(SavedCard(len(cards), GpuVendor.AMD))
            cards[-1].learn_bus_id(f"0000:{adapter[1]}:{adapter[2]}.0")
        elif line and not line[0].isspace() and ":" not in line:
            sensor = ""
            if cards and not line.startswith("amdgpu"):
                break  # the next adapter is another device
        elif cards:
            match = _SENSOR_LINE.match(line)
            if match is not None:
                sensor = SENSORS.get(match[1], "")
                _learn_sensor(cards[-1], match[1], match[2])
            for kind, value in _REMARK.findall(line):
                if kind == "cap":
                    cards[-1].learn("power_limit_watts", limit_watts(value))
                elif sensor:
                    limit = "slowdown" if kind == "crit" else "shutdown"
                    cards[-1].learn(f"{sensor}_{limit}_celsius", celsius(value))
    return cards or None


def _learn_sensor(card: SavedCard, label: str, value: str) -> None:
    if label in SENSORS:
        card.learn(f"{SENSORS[label]}_temperature_celsius", celsius(value))
    elif unit(value) in ("W", "mW"):
        card.learn("power_watts", watts(value))
        card.learn("power_average_watts", watts(value))
    elif label.startswith("fan"):
        card.learn("fan_rpm", count(value))
    elif label == "sclk":
        card.learn("sm_clock_mhz", number(value))
    elif label == "mclk":
        card.learn("memory_clock_mhz", number(value))


def read_decoded_metrics(text: str) -> list[SavedCard] | None:
    """The card of a decoded ``gpu_metrics``; ``None`` if the text is something else."""
    values = {
        match[1]: match[2]
        for line in text.splitlines()
        if (match := _METRIC.match(line)) is not None
    }
    if not NAMES & values.keys():
        return None
    card = SavedCard(0, GpuVendor.AMD)
    learn_metrics(card, values)
    revision = (values.get("format_revision"), values.get("content_revision"))
    if all(revision):
        size = count(values.get("structure_size"))
        card.learn("gpu_metrics", {"format": f"v{revision[0]}_{revision[1]}", "size": size})
    return [card]
