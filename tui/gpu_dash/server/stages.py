"""What a starting vLLM does now, read from its log.

The lines are those of vLLM 0.6 to 0.33 in their order; each names the stage that begins with it.
A server that prints none of them (log level WARNING, another engine) simply has no stages:
``/health`` is the last word on readiness.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """A stage of the start-up, and how far it is where the log says so."""

    name: str
    progress: float | None = None
    """0 to 1."""


_STAGES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("reading arguments", r"non-default args: |args: Namespace\(|vLLM (?:API )?server version"),
        ("reading the model's config", r"Resolved architecture: |Using max model len "),
        ("starting the engine", r"Initializing a V1 LLM engine|Initializing an LLM engine"),
        ("connecting the GPUs", r"distributed_init_method=|vLLM is using nccl=="),
        ("loading weights", r"Starting to load model |Loading safetensors checkpoint shards"),
        ("loading weights", r"Loading pt checkpoint shards"),
        ("weights are loaded", r"Loading weights took |Model loading took |Loading model weights"),
        ("compiling", r"Starting torch\.compile|Dynamo bytecode transform time|Compiling a graph"),
        ("compiling", r"Warming up model for the compilation"),
        ("sizing the KV cache", r"Available KV cache memory: |KV cache size: |# GPU blocks: "),
        ("capturing CUDA graphs", r"Capturing CUDA graph"),
        ("engine is up", r"init engine \(profile, create kv cache, warmup model\) took"),
        ("opening the port", r"Starting vLLM (?:API )?server|Started server process"),
        ("ready", r"Application startup complete"),
    )
)
SILENCE_S = 60.0
"""A start that is silent for so long is worth a word; a stage may have another limit."""


@dataclass(frozen=True)
class Wait:
    """What a silent stage waits for."""

    silence_s: float
    on: str


WAITS: dict[str, Wait] = {
    "": Wait(SILENCE_S, "Python to import vLLM: slow or cold file system?"),
    "connecting the GPUs": Wait(
        30.0,
        "the other ranks: GPUs at 100 % here mean a broken P2P path (IOMMU/ACS; try "
        "NCCL_P2P_DISABLE=1)",
    ),
    "loading weights": Wait(
        SILENCE_S, "the disk or the network file system that holds the model, or a download"
    ),
    "compiling": Wait(300.0, "the compiler: minutes are normal the first time"),
    "capturing CUDA graphs": Wait(SILENCE_S, "the capture of one graph on all ranks"),
}
"""What each stage waits for when the log falls silent."""

_HINT = re.compile("|".join(f"(?:{pattern.pattern})" for _, pattern in _STAGES))
_PROGRESS = re.compile(r"(?:shards|CUDA graph)[^|]*?:\s+(\d{1,3})%")


def stage_of(line: str) -> Stage | None:
    """The stage that a log line tells of; ``None`` for most lines."""
    if _HINT.search(line) is None:
        return None
    for name, pattern in _STAGES:
        if pattern.search(line):
            progress = _PROGRESS.search(line)
            return Stage(name, min(1.0, int(progress[1]) / 100) if progress else None)
    return None
