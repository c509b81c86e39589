"""A session in one line: what ``gpu-dash sessions list`` shows of it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from gpu_dash.analysis.verdict import Verdict
from gpu_dash.model.offered import highest, total
from gpu_dash.record.reader import SessionReader


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a session, and the best and worst of its steps."""

    session: str
    folder: str
    started_utc: str
    ended_utc: str
    """Empty: it goes on, or its agent was killed."""
    duration_s: float
    label: str
    profile: str
    model: str
    gpus: tuple[str, ...]
    """Their names."""
    steps: int
    requests_ok: int
    requests_failed: int
    best_output_tokens_per_s: float | None
    best_concurrency: int | None
    """Where it had the best throughput; ``None`` if that was in an open loop."""
    best_request_rate: float | None
    """The same of an open loop."""
    peak_temperature_celsius: float | None
    """Over the steps."""
    throttle_thermal_s: float | None
    exit_code: int | None
    knee_concurrency: int | None
    rows_lost: int
    size_bytes: int
    """Of all its files."""
    verdict: Verdict | None


def summarize_session(folder: Path) -> SessionSummary:
    """Read what a list of sessions shows.

    Raises:
        RecordError: the folder holds no session or cannot be read.
    """
    reader = SessionReader(folder)
    meta = reader.meta
    steps = list(reader.records("steps.csv"))
    best = max(steps, key=lambda step: step.get("output_tokens_per_s") or 0.0, default={})
    return SessionSummary(
        session=meta.session,
        folder=str(folder),
        started_utc=meta.anchor.time_utc(meta.anchor.monotonic),
        ended_utc=meta.ended_utc,
        duration_s=reader.duration_s,
        label=meta.label,
        profile=meta.profile,
        model=meta.model,
        gpus=tuple(gpu.name for gpu in meta.gpus),
        steps=len(steps),
        requests_ok=sum(step.get("requests_ok") or 0 for step in steps),
        requests_failed=sum(step.get("requests_failed") or 0 for step in steps),
        best_output_tokens_per_s=best.get("output_tokens_per_s"),
        best_concurrency=best.get("concurrency"),
        best_request_rate=best.get("request_rate"),
        peak_temperature_celsius=highest(step.get("peak_temperature_celsius") for step in steps),
        throttle_thermal_s=total(step.get("throttle_thermal_s") for step in steps),
        exit_code=meta.exit_code,
        knee_concurrency=meta.knee_concurrency,
        rows_lost=meta.rows_lost,
        size_bytes=_size_bytes(folder),
        verdict=meta.verdict,
    )


def _size_bytes(folder: Path) -> int:
    """What the files take; one that is gone by the time it is looked at takes nothing."""
    total_bytes = 0
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            total_bytes += path.lstat().st_size
    return total_bytes
