"""A session folder as a run to compare."""

from __future__ import annotations

from pathlib import Path

from gpu_dash.analysis.run import Run
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.record.meta import SessionMeta
from gpu_dash.record.reader import SessionReader


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
