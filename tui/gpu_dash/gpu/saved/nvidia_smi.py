"""``nvidia-smi -q`` as text and as XML, of drivers 304 to 610.

Both are a tree whose keys were renamed again and again; each fact lists the names it has had.
``T.Limit`` values are distances to a limit, not temperatures: with the temperature they give
the limits in degrees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from gpu_dash.gpu.reasons import throttle_reasons_named
from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.values import (
    celsius,
    limit_watts,
    megahertz,
    number,
    percent,
    size_bytes,
    watts,
    words,
)
from gpu_dash.model.gpu import GpuVendor

_GPU_LINE = re.compile(r"^GPU ([0-9A-Fa-f]+:[0-9A-Fa-f:.]+)\s*$", re.MULTILINE)
_TEXT_LINE = re.compile(r"( +)(\S[^:]*?)\s*(?::\s(.*))?$")
_DOCTYPE = re.compile(r"<!DOCTYPE[^>\[]*(\[.*?\])?[^>]*>", re.DOTALL)
_OTHER_DEVICES = ("mig device", "mig_devices", "processes")
"""Sections about something else than the card as a whole."""


def microseconds(value: Any) -> float | None:
    """A counter of microseconds, in seconds."""
    counted = number(value)
    return None if counted is None else counted / 1e6


_Fact = tuple[Callable[[Any], Any], tuple[str, ...]]
_FACTS: dict[str, _Fact] = {
    "uuid": (words, ("gpu uuid", "uuid")),
    "temperature_celsius": (
        celsius,
        ("temperature/gpu current temp", "temperature/gpu", "temperature/gpu_temp"),
    ),
    "memory_temperature_celsius": (
        celsius,
        ("temperature/memory current temp", "temperature/memory_temp"),
    ),
    "tlimit_celsius": (
        celsius,
        (
            "temperature/gpu current t.limit temp",
            "temperature/gpu t.limit temp",
            "temperature/gpu_temp_tlimit",
        ),
    ),
    "target_temperature_celsius": (
        celsius,
        (
            "temperature/gpu target temperature specification",
            "temperature/gpu target temperature",
            "temperature/gpu_target_temperature",
        ),
    ),
    "shutdown_temperature_celsius": (
        celsius,
        ("temperature/gpu shutdown temp", "temperature/gpu_temp_max_threshold"),
    ),
    "slowdown_temperature_celsius": (
        celsius,
        ("temperature/gpu slowdown temp", "temperature/gpu_temp_slow_threshold"),
    ),
    "max_operating_temperature_celsius": (
        celsius,
        ("temperature/gpu max operating temp", "temperature/gpu_temp_max_gpu_threshold"),
    ),
    "tlimit_shutdown_celsius": (
        celsius,
        ("temperature/gpu shutdown t.limit temp", "temperature/gpu_temp_max_tlimit_threshold"),
    ),
    "tlimit_slowdown_celsius": (
        celsius,
        ("temperature/gpu slowdown t.limit temp", "temperature/gpu_temp_slow_tlimit_threshold"),
    ),
    "tlimit_max_operating_celsius": (
        celsius,
        (
            "temperature/gpu max operating t.limit temp",
            "temperature/gpu_temp_max_gpu_tlimit_threshold",
        ),
    ),
    "sm_clock_mhz": (megahertz, ("clocks/sm", "clocks/sm_clock")),
    "graphics_clock_mhz": (megahertz, ("clocks/graphics", "clocks/graphics_clock")),
    "memory_clock_mhz": (megahertz, ("clocks/memory", "clocks/mem_clock")),
    "sm_clock_max_mhz": (megahertz, ("max clocks/sm", "max_clocks/sm_clock")),
    "memory_clock_max_mhz": (megahertz, ("max clocks/memory", "max_clocks/mem_clock")),
    "utilization_percent": (percent, ("utilization/gpu", "utilization/gpu_util")),
    "memory_utilization_percent": (percent, ("utilization/memory", "utilization/memory_util")),
    "memory_total_bytes": (
        size_bytes,
        ("fb memory usage/total", "memory usage/total", "fb_memory_usage/total"),
    ),
    "memory_used_bytes": (
        size_bytes,
        ("fb memory usage/used", "memory usage/used", "fb_memory_usage/used"),
    ),
    "memory_reserved_bytes": (size_bytes, ("fb memory usage/reserved", "fb_memory_usage/reserved")),
    "fan_percent": (percent, ("fan speed", "fan_speed")),
    "performance_state": (words, ("performance state", "performance_state")),
    "mig_mode": (words, ("mig mode/current", "mig_mode/current_mig")),
    "ecc_mode": (words, ("ecc mode/current", "ecc_mode/current_ecc")),
}
_POWER_SECTIONS = (
    "gpu power readings/", "power readings/", "gpu_power_readings/", "power_readings/"
)  # fmt: skip
_CEILING = "gpu ceiling power limit/"
_POWER: dict[str, _Fact] = {
    "power_watts": (
        watts,
        (
            "power draw", "power_draw", "average power draw", "average_power_draw",
            "instantaneous power draw", "instant_power_draw",
        ),
    ),
    "power_average_watts": (watts, ("average power draw", "average_power_draw")),
    "power_instant_watts": (watts, ("instantaneous power draw", "instant_power_draw")),
    "power_limit_watts": (
        limit_watts,
        (
            "enforced power limit", "enforced_power_limit", "current power limit",
            "current_power_limit", f"{_CEILING}current power limit", "power limit", "power_limit",
        ),
    ),
    "power_limit_default_watts": (
        limit_watts,
        ("default power limit", "default_power_limit", f"{_CEILING}default power limit"),
    ),
    "power_limit_min_watts": (watts, ("min power limit", "min_power_limit")),
    "power_limit_max_watts": (limit_watts, ("max power limit", "max_power_limit")),
}  # fmt: skip
_OTHER_POWER: dict[str, _Fact] = {
    "memory_power_average_watts": (
        watts,
        (
            "gpu memory power readings/average power draw",
            "gpu_memory_power_readings/average_power_draw",
        ),
    ),
    "module_power_watts": (
        watts,
        (
            "module power readings/power draw",
            "module power readings/average power draw",
            "module_power_readings/power_draw",
            "module_power_readings/average_power_draw",
        ),
    ),
}
_COUNTER = re.compile(
    r"clocks[ _](?:event|throttle)[ _]reasons[ _]counters/(?:clocks_\w+_counters_)?(.+)"
)
_COUNTERS = (
    (re.compile("sw.power.cap"), "sw_power_cap_s"),
    (re.compile("sw.therm"), "sw_thermal_s"),
    (re.compile("hw.therm"), "hw_thermal_s"),
    (re.compile("hw.power.brak"), "hw_power_brake_s"),
)
_REASON = re.compile(r"clocks[ _](?:event|throttle)[ _]reasons/(.*/)?(.+)")


def read_text(text: str) -> list[SavedCard] | None:
    """Cards of ``nvidia-smi -q``; ``None`` if the text is something else."""
    starts = list(_GPU_LINE.finditer(text))
    if not starts:
        return None
    ends = [*(start.start() for start in starts[1:]), len(text)]
    cards = []
    for gpu, (start, end) in enumerate(zip(starts, ends, strict=True)):
        pairs = list(_text_pairs(text[start.end() : end]))
        cards.append(_card(gpu, start[1], pairs, _mig_of_text(pairs)))
    return cards


def read_xml(text: str) -> list[SavedCard] | None:
    """Cards of ``nvidia-smi -q -x``; ``None`` if the text is something else.

    The document type names a file of the driver's and is left out unread.
    """
    at = text.find("<nvidia_smi_log")
    if at < 0:
        return None
    try:
        root = ElementTree.fromstring(_DOCTYPE.sub("", text[at:]).strip())
    except ElementTree.ParseError:
        return None
    return [
        _card(gpu, node.get("id", ""), list(_xml_pairs(node)), _mig_of_xml(node))
        for gpu, node in enumerate(root.findall("gpu"))
    ]


def _text_pairs(text: str) -> Iterator[tuple[str, str]]:
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = _TEXT_LINE.match(line)
        if match is None:
            continue
        indent, key, value = len(match[1]), match[2].strip().lower(), match[3]
        while above and above[-1][0] >= indent:
            above.pop()
        yield "/".join([*(name for _, name in above), key]), (value or "").strip()
        above.append((indent, key))


def _xml_pairs(node: ElementTree.Element, above: str = "") -> Iterator[tuple[str, str]]:
    for child in node:
        path = f"{above}{child.tag}"
        yield path, (child.text or "").strip()
        yield from _xml_pairs(child, f"{path}/")


def _card(
    gpu: int, bus_id: str, pairs: list[tuple[str, str]], mig: list[dict[str, Any]]
) -> SavedCard:
    card = SavedCard(gpu, GpuVendor.NVIDIA)
    values: dict[str, str] = {}
    for path, value in pairs:
        if not path.startswith(_OTHER_DEVICES):
            values.setdefault(path, value)
    card.learn_bus_id(bus_id)
    card.learn_name(values.get("product name", values.get("product_name", "")))
    card.learn_from(values, _FACTS)
    for section in _POWER_SECTIONS:
        of_section = {
            path.removeprefix(section): value
            for path, value in values.items()
            if path.startswith(section)
        }
        card.learn_from(of_section, _POWER)
    card.learn_from(values, _OTHER_POWER)
    _learn_reasons(card, values)
    learn_limits(card)
    if mig:
        card.learn("mig_devices", mig)
    return card


def learn_limits(card: SavedCard) -> None:
    """The headroom, and limits in degrees, where the driver gives distances."""
    temperature = card.facts.get("temperature_celsius")
    margin = card.facts.get("tlimit_celsius")
    card.learn("headroom_celsius", margin)
    if temperature is None or margin is None:
        return
    for limit in ("max_operating", "slowdown", "shutdown"):
        distance = card.facts.get(f"tlimit_{limit}_celsius")
        if distance is not None:
            card.learn(f"{limit}_temperature_celsius", temperature + margin - distance)


def _learn_reasons(card: SavedCard, values: Mapping[str, str]) -> None:
    active = []
    offered = False
    for path, value in values.items():
        counter = _COUNTER.match(path)
        if counter is not None:
            for pattern, name in _COUNTERS:
                if pattern.match(counter[1]):
                    card.learn(name, microseconds(value))
            continue
        reason = _REASON.match(path)
        if reason is not None and value in ("Active", "Not Active"):
            offered = True
            if value == "Active":
                active.append(reason[2])
    if offered:
        card.facts["clocks_event_reasons"], card.facts["throttle_reasons"] = throttle_reasons_named(
            active
        )


def _mig_of_text(pairs: list[tuple[str, str]]) -> list[dict[str, Any]]:
    devices: list[dict[str, Any]] = []
    for path, value in pairs:
        if path == "mig device":
            devices.append({})
        elif path.startswith("mig device/") and devices:
            _learn_mig(devices[-1], path.removeprefix("mig device/"), value)
    return devices


def _mig_of_xml(node: ElementTree.Element) -> list[dict[str, Any]]:
    devices: list[dict[str, Any]] = []
    for device in node.findall("mig_devices/mig_device"):
        devices.append({})
        for path, value in _xml_pairs(device):
            _learn_mig(devices[-1], path.replace("_", " "), value)
    return devices


def _learn_mig(device: dict[str, Any], path: str, value: str) -> None:
    """Compute instances of one GPU instance share its memory: it counts once for them all."""
    if path in ("index", "gpu instance id", "compute instance id"):
        device[path.replace(" ", "_")] = None if not value.isdigit() else int(value)
    elif path in ("shared fb memory usage/total", "fb memory usage/total"):
        device["memory_total_bytes"] = size_bytes(value)
    elif path in ("shared fb memory usage/used", "fb memory usage/used"):
        device["memory_used_bytes"] = size_bytes(value)
