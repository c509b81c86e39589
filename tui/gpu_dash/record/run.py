"""A session folder as a run to compare."""

from __future__ import annotations

import itertools
from pathlib import Path

from gpu_dash.analysis.run import Run
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.load import Outcome
from gpu_dash.record.meta import SessionMeta
from gpu_dash.record.reader import SessionReader

LOOKED_AT_REQUESTS = 1000
"""A server that sends ``usage`` sends it with each answer."""


def read_run(folder: Path) -> Run:
    """Read what a comparison needs.

    Raises:
        RecordError: the folder holds no session or cannot be read.
    """
    reader = SessionReader(folder)
    meta = reader.meta
    steps = tuple(reader.steps())
    cards = server_cards(meta)
    limits = _power_limits(reader, steps[0].time_s) if steps else {}
    return Run(
        session=meta.session,
        folder=str(folder),
        label=meta.label,
        profile=meta.profile,
        model=meta.model,
        vllm_version=meta.vllm_version,
        gpu_dash_version=meta.gpu_dash_version,
        gpus=tuple(card.name for card in cards),
        power_limit_watts=tuple(limits.get(card.gpu) for card in cards),
        passed=None if meta.verdict is None else meta.verdict.passed,
        arguments=meta.argv,
        plan=meta.plan,
        tokens_are_chunks=_tokens_are_chunks(reader),
        steps=steps,
    )


def server_cards(meta: SessionMeta) -> tuple[GpuInfo, ...]:
    """The cards that the server may use; all of the host where that is not known."""
    visible = meta.visible_gpus
    return tuple(card for card in meta.gpus if visible is None or card.gpu in visible)


def _power_limits(reader: SessionReader, at_s: float) -> dict[int, float]:
    """The limit in force on each card when the load began, without reading on from there."""
    limits: dict[int, float] = {}
    for record in reader.records("gpu.csv", ("time_s", "gpu", "power_limit_watts")):
        gpu, limit = record.get("gpu"), record.get("power_limit_watts")
        if gpu is not None and limit is not None:
            limits[gpu] = limit
        if (record.get("time_s") or 0.0) > at_s:
            break
    return limits


def _tokens_are_chunks(reader: SessionReader) -> bool | None:
    """Whether answers came without ``usage``; ``None`` if none came. One that was broken off has
    none from any server."""
    columns = ("outcome", "usage_missing")
    rows = itertools.islice(reader.records("requests.csv", columns), LOOKED_AT_REQUESTS)
    missing = [bool(row["usage_missing"]) for row in rows if row["outcome"] == Outcome.OK]
    return any(missing) if missing else None
