"""What a log says when it is read from its first line to its last."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpu_dash.logs.classify import Classifier
from gpu_dash.logs.lines import LineAssembler
from gpu_dash.model.events import Finding
from gpu_dash.model.log import LogLine

DATA = Path(__file__).parents[2] / "data" / "logs"


def capture(name: str) -> bytes:
    """A whole log as it was written."""
    return gzip.decompress((DATA / "captures" / f"{name}.log.gz").read_bytes())


def cases(name: str = "cases") -> list[dict[str, Any]]:
    """The corpus, or that of further wordings."""
    text = (DATA / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def read(pieces: Iterable[bytes]) -> tuple[list[LogLine], list[Finding]]:
    """The lines of a log and its findings, by line, as they stand at its end."""
    assembler, classifier = LineAssembler(), Classifier()
    lines: list[LogLine] = []
    findings: list[Finding] = []
    for data in pieces:
        texts = assembler.feed(data)
        if texts:
            new_lines, news = classifier.feed(texts, len(lines) + 1, at=1.0)
            lines += new_lines
            findings += news
    findings += classifier.settle(at=1.0)
    return lines, latest(findings)


def found(*lines: str) -> list[Finding]:
    """The findings in these lines."""
    return read(["".join(f"{line}\n" for line in lines).encode()])[1]


def latest(findings: Iterable[Finding]) -> list[Finding]:
    """The last word about each finding, in the order of their lines."""
    by_line = {finding.line: finding for finding in findings}
    return sorted(by_line.values(), key=lambda finding: finding.line or 0)
