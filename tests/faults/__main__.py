"""Play the faults and print the table: ``python -m tests.faults [WORD …]``."""

from __future__ import annotations

import asyncio
import sys

from tests.faults.plays import PLAYS
from tests.faults.stage import Outcome, play

SAID_CHARACTERS = 220


def row(name: str, outcome: Outcome) -> str:
    """A line of the table."""
    said = " ".join(outcome.said.split()).replace("|", "\\|")
    if len(said) > SAID_CHARACTERS:
        said = said[:SAID_CHARACTERS] + "…"
    seen = "-" if outcome.seconds != outcome.seconds else f"{outcome.seconds:.1f} s"
    clean, whole = ("yes" if fine else "NO" for fine in (outcome.is_clean, outcome.is_whole))
    return f"| {name} | {seen} | {said} | {clean} | {whole} |"


async def main(words: list[str]) -> int:
    """Play those whose name holds one of the words, or all."""
    print("| fault | seen in | what is said | nothing left | nothing lost |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    bad = 0
    for name, fault in PLAYS.items():
        if words and not any(word in name for word in words):
            continue
        _, outcome = await play(name, fault)
        bad += not (outcome.is_clean and outcome.is_whole)
        print(row(name, outcome), flush=True)
    return 1 if bad else 0


sys.exit(asyncio.run(main(sys.argv[1:])))
