"""``nvidia-smi -q`` as text and as XML, of drivers 304 to 610.

Both are a tree whose keys were renamed again and again; each fact lists the names it has had.
``T.Limit`` values are distances to a limit, not temperatures: with the temperature they give
the limits in degrees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from gpu_dash.gpu.reasons import throttle_reasons_named
from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.saved.nvidia_smi_names import (
    FACTS,
    OTHER_POWER,
    POWER,
    POWER_SECTIONS,
    microseconds,
)
from gpu_dash.gpu.values import (
    size_bytes,
)
from gpu_dash.model.gpu import GpuVendor

_GPU_LINE = re.compile(r"^GPU ([0-9A-Fa-f]+:[0-9A-Fa-f:.]+)\s*$", re.MULTILINE)
_TEXT_LINE = re.compile(r"( +)(\S[^:]*?)\s*(?::\s(.*))?$")
_END = "</nvidia_smi_log>"
_OTHER_DEVICES = ("mig device", "mig_devices", "processes")
"""Sections about something else than the card as a whole."""


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

    What stands before it, as the document type, is left out unread.
    """
    begin, end = text.find("<nvidia_smi_log"), text.rfind(_END)
    if begin < 0 or end < begin:
        return None
    try:
        root = ElementTree.fromstring(text[begin : end + len(_END)])
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
    card.learn_from(values, FACTS)
    for section in POWER_SECTIONS:
        of_section = {
            path.removeprefix(section): value
            for path, value in values.items()
            if path.startswith(section)
        }
        card.learn_from(of_section, POWER)
    card.learn_from(values, OTHER_POWER)
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
