"""What the server was doing when it said something, as far as its log tells.

The same line is harmless while weights are loading and fatal while serving, and running out of
memory has another cure at each stage.
"""

from __future__ import annotations

import re
from enum import Enum


class Stage(Enum):
    """The life of a server in the order in which it is lived."""

    UNKNOWN = "unknown"
    """The log was read from somewhere in its middle."""
    STARTING = "starting"
    LOADING = "loading"
    PROFILING = "profiling"
    """Weights are in; memory is being measured."""
    COMPILING = "compiling"
    CAPTURING = "capturing"
    SERVING = "serving"
    STOPPING = "stopping"
    """Somebody asked it to stop."""


_SIGNS: tuple[tuple[Stage, tuple[str, ...]], ...] = (
    (
        Stage.STARTING,
        # Once per server; the engines of one server begin one after the other.
        ("vLLM API server version", "vLLM server version", "non-default args: "),
    ),
    (
        Stage.LOADING,
        ("Starting to load model", "Loading safetensors checkpoint", "Loading pt checkpoint"),
    ),
    (
        Stage.PROFILING,
        ("Model loading took", "Loading model weights took", "Available KV cache memory"),
    ),
    (
        Stage.COMPILING,
        (
            "Starting torch.compile",
            "Dynamo bytecode transform time",
            "Compiling a graph",
            "Warming up model for the compilation",
        ),
    ),
    (
        Stage.CAPTURING,
        ("Capturing CUDA graph", "Capturing cudagraphs", "Capturing the model for CUDA graphs"),
    ),
    (
        Stage.SERVING,
        ("Application startup complete", "Avg prompt throughput", '"POST /v1/'),
    ),
    (
        Stage.STOPPING,
        (
            "API server: shutdown triggered",
            "EngineCore: trigger received signal=",
            "Shutting down FastAPI HTTP server",
        ),
    ),
)
_STAGE_OF = {sign: stage for stage, signs in _SIGNS for sign in signs}
_ANY_SIGN = re.compile("|".join(map(re.escape, _STAGE_OF)))


def stage_told_by(message: str) -> Stage | None:
    """The stage that a message tells of; ``None`` for most."""
    found = _ANY_SIGN.search(message)
    return _STAGE_OF[found[0]] if found else None
