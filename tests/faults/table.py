"""The table of faults, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tests.faults.stage import Outcome, Play, play

SAID_CHARACTERS = 220


async def print_table(plays: Mapping[str, Play], words: Sequence[str]) -> int:
    """Play those whose name holds one of the words, or all; gives how many went badly."""
    print("| fault | seen in | what is said | nothing left | nothing lost |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    bad = 0
    for name, fault in plays.items():
        if words and not any(word in name for word in words):
            continue
        outcome = await play(fault)
        bad += not (outcome.is_clean and outcome.is_whole)
        print(_row(name, outcome), flush=True)
    return bad


def _row(name: str, outcome: Outcome) -> str:
    said = " ".join(outcome.said.split()).replace("|", "\\|")
    if len(said) > SAID_CHARACTERS:
        said = said[:SAID_CHARACTERS] + "…"
    seen = "-" if math.isnan(outcome.seconds) else f"{outcome.seconds:.1f} s"
    clean, whole = ("yes" if fine else "NO" for fine in (outcome.is_clean, outcome.is_whole))
    return f"| {name} | {seen} | {said} | {clean} | {whole} |"
