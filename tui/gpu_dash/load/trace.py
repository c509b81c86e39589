"""A recorded trace: when each request is due, and what it asks.

JSON Lines, or CSV with a header line. The fields of an entry:

* the moment: ``timestamp`` in milliseconds (the form of the Mooncake traces), or ``at`` in
  seconds; the first entry is due at once;
* what it asks: ``prompt``, or ``input_length`` (or ``prompt_tokens``) for a synthetic prompt of so
  many tokens; ``hash_ids`` name its blocks of 512 tokens, and requests with the same id have the
  same block, so that a prefix cache finds what it found when the trace was recorded;
* the answer: ``output_length`` (or ``output_tokens``); the plan's where there is none.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import LoadPlan
from gpu_dash.model.token_spread import MOST_TOKENS

BLOCK_TOKENS = 512
"""Tokens behind one of the ``hash_ids``: the block size of the Mooncake traces."""
MAX_ENTRIES = 200_000
"""More are left out: they would only take memory."""


class TraceEntry(NamedTuple):
    """One request of a trace."""

    at_s: float
    """Seconds since the first one."""
    prompt: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    blocks: tuple[int, ...] = ()
    """Ids of the prompt's blocks, from its head."""


def read_trace(path: str) -> tuple[TraceEntry, ...]:
    """The entries of a trace by their moment, the first at 0.

    Raises:
        UsageError: the file cannot be read, or a line of it is no entry.
    """
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            lines = itertools.islice(_objects(file), MAX_ENTRIES)
            entries = sorted((_entry(number, value) for number, value in lines), key=_moment)
    except OSError as error:
        raise UsageError(f"trace {path}: {error.strerror}; check the path") from error
    except (ValueError, csv.Error) as error:
        raise UsageError(f"trace {path}: {error}") from error
    if not entries:
        raise UsageError(f"trace {path}: no entry in it; a line wants `timestamp` or `at`")
    first_s = entries[0].at_s
    return tuple(entry._replace(at_s=entry.at_s - first_s) for entry in entries)


def with_trace(plan: LoadPlan) -> LoadPlan:
    """A plan whose trace has been looked at: one step of as many requests as it has, at the rate
    that they come to on average.

    Raises:
        UsageError: the trace cannot be read.
    """
    if plan.trace is None:
        return plan
    entries = read_trace(plan.trace)
    # the whole length of the trace is unknown: its last request counts like the others
    seconds = entries[-1].at_s * len(entries) / max(1, len(entries) - 1) / plan.trace_speed
    rate = len(entries) / seconds if seconds > 0 else float(len(entries))
    told = float(f"{rate:.3g}")
    return msgspec.structs.replace(plan, rates=(told,), requests=len(entries))


def _moment(entry: TraceEntry) -> float:
    return entry.at_s


def _objects(file: Iterable[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each entry with the number of its line."""
    numbered = ((number, line) for number, line in enumerate(file, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        return
    if not first[1].lstrip().startswith("{"):
        names = next(csv.reader([first[1]]))
        for number, line in numbered:
            cells = next(csv.reader([line]))
            yield (
                number,
                {name.strip().lower(): cell for name, cell in zip(names, cells, strict=False)},
            )
        return
    for number, line in itertools.chain([first], numbered):
        try:
            value = json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        if not isinstance(value, dict):
            raise ValueError(f"line {number}: no JSON object; write one on each line")
        yield number, value


def _entry(number: int, value: Mapping[str, Any]) -> TraceEntry:
    where = f"line {number}"
    if value.get("at") not in (None, ""):
        at_s = _number(where, "at", value["at"])
    elif value.get("timestamp") not in (None, ""):
        at_s = _number(where, "timestamp", value["timestamp"]) / 1000
    else:
        raise ValueError(f"{where}: neither `at` (seconds) nor `timestamp` (milliseconds) is in it")
    prompt = value.get("prompt")
    blocks = value.get("hash_ids") or ()
    if not isinstance(blocks, list | tuple) or not all(isinstance(id_, int) for id_ in blocks):
        raise ValueError(f"{where}: `hash_ids` is no list of whole numbers")
    return TraceEntry(
        at_s,
        prompt if isinstance(prompt, str) and prompt else None,
        _tokens(where, value, "input_length", "prompt_tokens"),
        _tokens(where, value, "output_length", "output_tokens"),
        tuple(blocks),
    )


def _number(where: str, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{where}: `{name}` is {value!r}, not a number")
    return number


def _tokens(where: str, value: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        if value.get(name) not in (None, ""):
            number = _number(where, name, value[name])
            if not 0 <= number <= MOST_TOKENS:
                raise ValueError(f"{where}: `{name}` is {value[name]!r}, not a number of tokens")
            return max(1, round(number))  # traces have requests of nothing; a server refuses them
    return None
