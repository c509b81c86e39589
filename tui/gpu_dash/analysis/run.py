"""One recorded session as a run that can be set beside others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpu_dash.model.load import LoadPlan, StepResult


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison needs of a session. Empty or ``None``: not known."""

    session: str
    folder: str = ""
    label: str = ""
    profile: str = ""
    model: str = ""
    vllm_version: str = ""
    gpu_dash_version: str = ""
    gpus: tuple[str, ...] = ()
    """Names of the server's cards."""
    power_limit_watts: tuple[float | None, ...] = ()
    """The limit in force on each of these cards as the first step began."""
    passed: bool | None = None
    """The verdict's outcome."""
    arguments: tuple[str, ...] = ()
    """The server's argument list."""
    plan: LoadPlan | None = None
    tokens_are_chunks: bool | None = None
    """The server sent no ``usage``, so that its output tokens are the chunks that came."""
    steps: tuple[StepResult, ...] = ()
    """In the order in which they ran."""


def names_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """A name for each run by which a person tells it from the others: the label where each run
    has one of its own, else the session's name, else the folder."""
    for kind in ("label", "session", "folder"):
        names = tuple(str(getattr(run, kind)) for run in runs)
        if all(names) and len(set(names)) == len(names):
            return names
    return tuple(f"{run.session} ({number})" for number, run in enumerate(runs, 1))
