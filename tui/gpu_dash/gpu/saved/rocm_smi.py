"""``rocm-smi``: JSON, ``--csv`` and ``GPU[0] : key: value`` text, of ROCm 2 to 7.

All three are the same keys. Their wording changes from release to release, so keys are matched
by pattern. Keys that are bare numbers are stray clock levels, and activities without a percent
sign are counters.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.saved.metrics_names import learn_metrics
from gpu_dash.gpu.saved.patterns import Pattern, Patterns
from gpu_dash.gpu.values import (
    celsius,
    count,
    limit_watts,
    megahertz,
    number,
    percent,
    size_bytes,
    watts,
    words,
)
from gpu_dash.model.gpu import GpuVendor

_CARD = re.compile(r"card(\d+)$")
_TEXT_LINE = re.compile(r"GPU\[(\d+)\]\s*:\s*(.+)$")
_MHZ = re.compile(r"\(?\s*(\d+(?:\.\d+)?)\s*mhz", re.IGNORECASE)
_UNIT = re.compile(r"\s+\(.*\)$")
_SECONDARY_DIE = re.compile("secondary die", re.IGNORECASE)
_TWO_DIES = ("0x7408", "0x740c")
"""Device identifiers of MI250X and MI250: two dies, of which the first answers for the power."""


def _clock(value: Any) -> float | None:
    match = _MHZ.search(str(value))
    return None if match is None else megahertz(match[1])


def _highest_clock(value: Any) -> float | None:
    clocks = [float(clock) for clock in _MHZ.findall(str(value))]
    return max(clocks, default=None)


def _microjoules(value: Any) -> float | None:
    energy = number(value)
    return None if energy is None else energy / 1e6


_FACTS: tuple[Pattern, ...] = (
    (r"temperature \(sensor edge\)", "edge_temperature_celsius", celsius),
    (r"temperature \(sensor (junction|hotspot)\)", "hotspot_temperature_celsius", celsius),
    (r"temperature \(sensor mem(ory)?\)", "memory_temperature_celsius", celsius),
    (
        r"(average |current )?(socket )?graphics package power( \(w\))?$|power \(avg\)$",
        "power_watts",
        watts,
    ),
    (r"max graphics package power", "power_limit_watts", limit_watts),
    (r"gpu use \(%\)", "utilization_percent", percent),
    (
        r"gpu memory use \(%\)|gpu memory read/write activity \(%\)",
        "memory_utilization_percent",
        percent,
    ),
    (r"gpu memory allocated \(vram%\)", "memory_used_percent", percent),
    (r"vram total memory \(b\)", "memory_total_bytes", size_bytes),
    (r"vram total used memory \(b\)", "memory_used_bytes", size_bytes),
    (r"gtt total memory \(b\)", "gtt_total_bytes", size_bytes),
    (r"gtt total used memory \(b\)", "gtt_used_bytes", size_bytes),
    (r"sclk clock (speed|level)", "sm_clock_mhz", _clock),
    (r"mclk clock (speed|level)", "memory_clock_mhz", _clock),
    (r"valid sclk range", "sm_clock_max_mhz", _highest_clock),
    (r"valid mclk range", "memory_clock_max_mhz", _highest_clock),
    (r"fan speed \(%\)", "fan_percent", percent),
    (r"fan rpm|fan speed \(rpm\)", "fan_rpm", count),
    (r"voltage \(mv\)", "voltage_mv", number),
    (r"accumulated energy \(uj\)", "energy_joules", _microjoules),
    (r"compute partition", "compute_partition", words),
    (r"memory partition", "memory_partition", words),
)
_PATTERNS = Patterns(_FACTS, whole=False)
_HBM = re.compile(r"temperature \(sensor hbm (\d+)\)")
_NAME_KEYS = ("card series", "device name", "card model", "product name")


def read_json(text: str) -> list[SavedCard] | None:
    """Cards of ``rocm-smi --json``; ``None`` if the text is something else.

    Warnings may stand before and behind the document.
    """
    try:
        document, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    cards = [
        _card(int(match[1]), values.items())
        for key, values in document.items()
        if (match := _CARD.match(key)) and isinstance(values, dict)
    ]
    return cards or None


def read_csv(text: str) -> list[SavedCard] | None:
    """Cards of ``rocm-smi --csv``; ``None`` if the text is something else."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith("device,")), None)
    if start is None:
        return None
    rows = csv.DictReader(io.StringIO("\n".join(line for line in lines[start:] if line.strip())))
    cards = []
    for row in rows:
        match = _CARD.match(row["device"] or "")
        if match is not None:
            cards.append(_card(int(match[1]), ((key, value) for key, value in row.items() if key)))
    return cards or None


def read_text(text: str) -> list[SavedCard] | None:
    """Cards of the lines ``GPU[0] : key: value``; ``None`` if there is none."""
    pairs: dict[int, list[tuple[str, str]]] = {}
    for line in text.splitlines():
        match = _TEXT_LINE.match(line.strip())
        if match is not None:
            key, _, value = match[2].partition(": ")
            pairs.setdefault(int(match[1]), []).append((key, value))
    return [_card(gpu, of_card) for gpu, of_card in pairs.items()] or None


def _card(gpu: int, pairs: Iterable[tuple[str, Any]]) -> SavedCard:
    card = SavedCard(gpu, GpuVendor.AMD)
    pairs = [(key.strip().rstrip(":").lower(), value) for key, value in pairs]
    hbm: dict[int, float] = {}
    for key, value in pairs:
        _PATTERNS.learn(card, key, value)
        stack = _HBM.match(key)
        if stack is not None and (temperature := celsius(value)) is not None:
            hbm[int(stack[1])] = temperature
    if any(hbm.values()):  # a chip without such sensors may say 0 for each
        card.learn("hbm_temperatures_celsius", tuple(hbm[stack] for stack in sorted(hbm)))
    values = dict(pairs)
    for key in _NAME_KEYS:
        card.learn_name(values.get(key, ""))
    card.learn_bus_id(values.get("pci bus", ""))
    unique = words(values.get("unique id", ""))
    card.learn("uuid", unique if unique.strip("0x") else "")
    learn_metrics(card, {_UNIT.sub("", key): value for key, value in pairs})
    _mark_secondary_die(card, values)
    return card


def _mark_secondary_die(card: SavedCard, values: Mapping[str, Any]) -> None:
    """The second die of a card has no power of its own; older tools write 0 W for it."""
    two_dies = any(str(values.get(key, "")).lower() in _TWO_DIES for key in ("gpu id", "device id"))
    says_so = any(_SECONDARY_DIE.search(str(value)) for value in values.values())
    if says_so or (two_dies and card.facts.get("power_watts") == 0):
        card.facts["secondary_die"] = True
        card.facts.pop("power_watts", None)
        card.facts.pop("power_limit_watts", None)
