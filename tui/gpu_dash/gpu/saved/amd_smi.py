"""``amd-smi metric``, ``static`` and ``list``: JSON, CSV and indented text, of ROCm 5 to 10.

Both are the same tree: sections with keys below them. A whole section may be the string
``N/A``, a value ``{"value", "unit"}`` or a text with its unit, and JSON comes as a list or as
``{"gpu_data": […]}``. Sections of CPUs may come before the GPUs'.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpu_dash.gpu.reasons import HW_POWER_BRAKE, HW_THERMAL, SW_POWER_CAP
from gpu_dash.gpu.saved.card import SavedCard
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

_SECTIONS = ("usage", "power", "clock", "temperature", "throttle", "limit", "asic", "mem_usage")
_TEXT_LINE = re.compile(r"( *)([A-Za-z][\w ]*?):(?:\s+(.*))?$")
_CSV_HEAD = re.compile(r"(?:timestamp,)?gpu,", re.IGNORECASE)
_DOCUMENT = re.compile(r"[\[{]")
_GPU_LINE = re.compile(r"GPU:\s*(\d+)\s*$", re.MULTILINE)


def _size_in_mb(value: Any) -> int | None:
    return size_bytes(value, "MB")


def _throttled(value: Any) -> bool | None:
    return {"throttled": True, "unthrottled": False}.get(str(value).strip().lower())


def _joules(value: Any) -> float | None:
    energy = number(value)
    return None if energy is None or not 0 <= energy < _NO_ENERGY else energy


_NO_ENERGY = 2.0**63
"""All ones, in whatever unit: no counter."""
_VRAM_TOTAL = r"vram\.(vram_)?size(_mb)?|(mem_usage\.)?total_vram|vram_total|fb_usage\.fb_total"
_FACTS: tuple[Pattern, ...] = (
    (r"(temperature\.)?edge(_temperature)?", "edge_temperature_celsius", celsius),
    (
        r"temperature\.(hotspot|junction)(_temperature)?|hotspot(_temperature)?",
        "hotspot_temperature_celsius",
        celsius,
    ),
    (
        r"temperature\.(mem|vram)(_temperature)?|memory_temperature",
        "memory_temperature_celsius",
        celsius,
    ),
    (
        r"power\.((current_|average_)?(socket_)?power|power_usage)|power_usage|socket_power",
        "power_watts",
        watts,
    ),
    (r"power\.gfx_voltage", "gfx_voltage_mv", number),
    (r"power\.soc_voltage", "soc_voltage_mv", number),
    (r"power\.mem_voltage", "mem_voltage_mv", number),
    (r"power\.throttle_status", "throttled", _throttled),
    (
        r"limit\.(ppt0\.)?(socket_power(_limit)?|current_power|power_cap)|power_cap"
        r"|power\.power_limit",
        "power_limit_watts",
        limit_watts,
    ),
    (r"limit\.(ppt0\.)?max_power(_limit)?", "power_limit_max_watts", watts),
    (r"limit\.(ppt0\.)?min_power(_limit)?", "power_limit_min_watts", watts),
    (r"limit\.slowdown_edge_temperature", "edge_slowdown_celsius", celsius),
    (r"limit\.slowdown_hotspot_temperature", "hotspot_slowdown_celsius", celsius),
    (r"limit\.slowdown_(vram|mem)_temperature", "memory_slowdown_celsius", celsius),
    (r"limit\.shutdown_edge_temperature", "edge_shutdown_celsius", celsius),
    (r"limit\.shutdown_hotspot_temperature", "hotspot_shutdown_celsius", celsius),
    (r"limit\.shutdown_(vram|mem)_temperature", "memory_shutdown_celsius", celsius),
    (r"(usage\.)?gfx_activity|usage\.gfx_usage|gfx", "utilization_percent", percent),
    (r"(usage\.)?umc_activity|usage\.mem_usage|mem", "memory_utilization_percent", percent),
    (r"clock\.gfx(_\d+)?\.(clk|cur_clk)|gfx(_\d+)?_cl(oc)?k", "sm_clock_mhz", megahertz),
    (r"clock\.gfx(_\d+)?\.max_clk|gfx(_\d+)?_max_clk", "sm_clock_max_mhz", megahertz),
    (r"clock\.mem(_\d+)?\.(clk|cur_clk)|mem(_\d+)?_cl(oc)?k", "memory_clock_mhz", megahertz),
    (r"clock\.mem(_\d+)?\.max_clk|mem(_\d+)?_max_clk", "memory_clock_max_mhz", megahertz),
    (_VRAM_TOTAL, "memory_total_bytes", _size_in_mb),
    (r"(mem_usage\.)?used_vram|vram_used|fb_usage\.fb_used", "memory_used_bytes", _size_in_mb),
    (r"mem_usage\.total_gtt", "gtt_total_bytes", _size_in_mb),
    (r"mem_usage\.used_gtt", "gtt_used_bytes", _size_in_mb),
    (r"(ecc\.)?(total_)?correctable(_count)?", "ecc_corrected", count),
    (r"(ecc\.)?(total_)?uncorrectable(_count)?", "ecc_uncorrected", count),
    (r"fan\.rpm", "fan_rpm", count),
    (r"fan\.usage", "fan_percent", percent),
    (r"(energy\.)?total_energy_consumption", "energy_joules", _joules),
    (r"partition\.compute_partition", "compute_partition", words),
    (r"partition\.memory_partition", "memory_partition", words),
    (r"throttle\.ppt_accumulated", "ppt_accumulated", count),
    (r"throttle\.socket_thermal_accumulated", "socket_thermal_accumulated", count),
    (r"throttle\.ppt_violation_activity", "ppt_violation_percent", percent),
    (
        r"throttle\.socket_thermal_violation_activity",
        "socket_thermal_violation_percent",
        percent,
    ),
)
_PATTERNS = Patterns(_FACTS, whole=True)
_REASON_OF_VIOLATION = {
    "throttle.ppt_violation_status": SW_POWER_CAP,
    "throttle.prochot_violation_status": HW_POWER_BRAKE,
    "throttle.socket_thermal_violation_status": HW_THERMAL,
    "throttle.vr_thermal_violation_status": HW_THERMAL,
    "throttle.hbm_thermal_violation_status": HW_THERMAL,
}


def read_json(text: str) -> list[SavedCard] | None:
    """Cards of ``amd-smi … --json``; ``None`` if the text is something else.

    Watch mode writes a line of words first, and one document after the other: the last counts.
    """
    decoder = json.JSONDecoder()
    entries: list[Any] | None = None
    at = 0
    while match := _DOCUMENT.search(text, at):
        try:
            document, at = decoder.raw_decode(text, match.start())
        except ValueError:
            at = match.end()
            continue
        found = document.get("gpu_data") if isinstance(document, dict) else document
        if isinstance(document, dict) and found is None and "gpu" in document:
            found = [document]
        if isinstance(found, list) and any(_is_gpu(entry) for entry in found):
            entries = [entry for entry in found if _is_gpu(entry)]
    if entries is None:
        return None
    return [_card(int(entry["gpu"]), dict(_flat(entry))) for entry in entries]


def read_csv(text: str) -> list[SavedCard] | None:
    """Cards of ``amd-smi … --csv``, the last row of each; ``None`` if the text is something else.

    Its columns are the keys without their sections, so that ``mem`` is a temperature beside
    ``hotspot`` (``metric``) and a use beside ``gfx`` (``monitor``).
    """
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if _CSV_HEAD.match(line)), None)
    if start is None:
        return None
    cards: dict[int, SavedCard] = {}
    for row in csv.DictReader(lines[start:]):
        gpu = row.get("gpu") or ""
        values = {key.strip().lower(): value for key, value in row.items() if key and value}
        if "hotspot" in values and "mem" in values:
            values["temperature.mem"] = values.pop("mem")
        if gpu.isdigit():
            cards[int(gpu)] = _card(int(gpu), values)
    return list(cards.values()) or None


def read_text(text: str) -> list[SavedCard] | None:
    """Cards of the indented text; ``None`` if the text is something else."""
    starts = list(_GPU_LINE.finditer(text))
    if not starts:
        values = _text_values(text)
        known = any(path.split(".")[0] in _SECTIONS for path in values)
        return [_card(0, values)] if known else None
    ends = [*(start.start() for start in starts[1:]), len(text)]
    by_gpu: dict[int, dict[str, str]] = {}
    for start, end in zip(starts, ends, strict=True):
        values = _text_values(text[start.end() : end])
        by_gpu.setdefault(int(start[1]), {}).update(values)
    return [_card(gpu, values) for gpu, values in by_gpu.items()]


def _is_gpu(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("gpu"), int)


def _flat(node: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        path = f"{above}{key.lower()}"
        if isinstance(value, Mapping) and "value" not in value:
            yield from _flat(value, f"{path}.")
        else:
            yield path, value


def _text_values(text: str) -> dict[str, str]:
    """The tree as ``section.key`` → value. Wrapped lines of lists belong to no key and go."""
    values: dict[str, str] = {}
    open_keys: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = _TEXT_LINE.match(line)
        if match is None:
            continue
        indent, key, value = len(match[1]), match[2].lower(), match[3]
        while open_keys and open_keys[-1][0] >= indent:
            open_keys.pop()
        path = ".".join([*(name for _, name in open_keys), key])
        if value is None or not value.strip():
            open_keys.append((indent, key))
        else:
            values.setdefault(path, value.strip())
    return values


def _card(gpu: int, values: Mapping[str, Any]) -> SavedCard:
    card = SavedCard(gpu, GpuVendor.AMD)
    for path, value in values.items():
        _PATTERNS.learn(card, path, value)
    for section, name in (("sys", "sm_clock_mhz"), ("mem", "memory_clock_mhz")):
        level = count(values.get(f"clock.{section}.current_level"))
        key = f"clock.{section}.frequency_levels.level {level}"
        card.learn(name, megahertz(values.get(key)))
    for key in ("asic.market_name", "board.product_name"):
        card.learn_name(values.get(key, ""))
    for key in ("bus.bdf", "bdf", "gpu_bdf"):
        card.learn_bus_id(values.get(key, ""))
    for key in ("uuid", "gpu_uuid"):
        card.learn("uuid", words(values.get(key, "")))
    _learn_violations(card, values)
    if any("secondary die" in str(value).lower() for value in values.values()):
        card.facts["secondary_die"] = True
    return card


def _learn_violations(card: SavedCard, values: Mapping[str, Any]) -> None:
    said = {
        path: str(values[path]).strip().upper()
        for path in _REASON_OF_VIOLATION
        if words(values.get(path, ""))
    }
    if said:
        active = {_REASON_OF_VIOLATION[path] for path, status in said.items() if status == "ACTIVE"}
        order = (SW_POWER_CAP, HW_THERMAL, HW_POWER_BRAKE)
        card.learn("throttle_reasons", tuple(reason for reason in order if reason in active))
