"""A session as one file for other tools.

JSON has everything, with the names of the columns and ``null`` for what is not offered, and the
flat list ``samples``; CSV is that flat list alone: one row per card and second. The session
folder itself is already CSV.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, TextIO

import msgspec

from gpu_dash.record.reader import SessionReader

SAMPLE_COLUMNS = ("ts", "gpu", "temp", "power", "sm_clk", "util")
"""Seconds since the epoch, index, °C, W, MHz, percent."""

_LISTS = {
    "steps": "steps.csv",
    "requests": "requests.csv",
    "events": "events.csv",
    "server": "server.csv",
    "gpu": "gpu.csv",
    "gpu_fast": "gpu_fast.csv",
}


def write_json(reader: SessionReader, out: TextIO) -> None:
    """One object: ``meta``, a list per CSV file, and ``samples``. Row by row, so that a long
    session does not have to fit into memory.

    Raises:
        RecordError: a file of the session cannot be read.
        OSError: ``out`` takes no more.
    """
    out.write('{\n"meta": ' + _json(msgspec.to_builtins(reader.meta)))
    for name, file in _LISTS.items():
        _write_list(name, (_for_json(record) for record in reader.records(file)), out)
    _write_list("samples", samples(reader), out)
    out.write("\n}\n")


def write_csv(reader: SessionReader, out: TextIO) -> None:
    """The flat list of samples with a header.

    Raises:
        RecordError: a file of the session cannot be read.
        OSError: ``out`` takes no more.
    """
    rows = csv.DictWriter(out, SAMPLE_COLUMNS, lineterminator="\n")
    rows.writeheader()
    rows.writerows(samples(reader))


def samples(reader: SessionReader) -> Iterator[dict[str, float | None]]:
    """What every tool can read: one small record per card and second."""
    for record in reader.records("gpu.csv"):
        yield {
            "ts": _epoch(record.get("time_utc")),
            "gpu": record.get("gpu"),
            "temp": record.get("temperature_celsius"),
            "power": record.get("power_watts"),
            "sm_clk": record.get("sm_clock_mhz"),
            "util": record.get("utilization_percent"),
        }


def _write_list(name: str, records: Iterable[dict[str, Any]], out: TextIO) -> None:
    out.write(f',\n"{name}": [')
    separator = "\n"
    for record in records:
        out.write(separator + _json(record))
        separator = ",\n"
    out.write("]")


def _for_json(record: dict[str, Any]) -> dict[str, Any]:
    """Lists and objects where a cell could only hold their text."""
    if "throttle_reasons" in record:
        reasons = record["throttle_reasons"]
        return {**record, "throttle_reasons": reasons.split("+") if reasons else []}
    if record.get("data"):
        try:
            return {**record, "data": json.loads(record["data"])}
        except ValueError:
            return {**record, "data": None}
    return record


def _epoch(time_utc: str | None) -> float | None:
    try:
        return round(datetime.fromisoformat(time_utc or "").timestamp(), 3)
    except ValueError:
        return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
