"""Whether the cards that are there can hold what a profile asks for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from gpu_dash.model.errors import PreflightError
from gpu_dash.model.gpu import GpuSample
from gpu_dash.model.profile import Profile
from gpu_dash.server.command_line import parallel_of

DEFAULT_UTILIZATION = 0.9
"""``--gpu-memory-utilization`` of the vLLM versions that ask for least."""


def check_gpus(
    profile: Profile,
    visible: Sequence[int],
    problem: str,
    cards: Mapping[int, GpuSample],
    divided: Collection[int] = (),
) -> None:
    """Refuse a launch that asks for more cards, or more of their memory, than is free.

    Args:
        profile: a checked profile.
        visible: host indexes of the cards that the server will see.
        problem: what is wrong with the variables that say so; empty: nothing.
        cards: the newest reading of each card of this host; without any there is nothing to say.
        divided: cards that are split into parts (MIG), whose memory is not the card's.

    Raises:
        PreflightError: with what to write instead, or what to look for.
    """
    if not cards:
        return
    where = f"profile {profile.name!r}"
    parallel = parallel_of(profile)
    needed = parallel.tensor * parallel.pipeline
    if len(visible) < needed:
        if problem:
            present = ", ".join(map(str, sorted(cards)))
            raise PreflightError(
                f"{where}: {problem}; this host has {len(cards)} GPUs ({present}); `gpu-dash "
                "gpus --json` lists their UUIDs"
            )
        raise PreflightError(
            f"{where}: `tensor-parallel-size`: {parallel.tensor} x {parallel.pipeline} (pipeline) "
            f"needs {needed} GPUs and {len(visible)} can be seen; write a smaller size, or see "
            "CUDA_VISIBLE_DEVICES"
        )
    whole = tuple(gpu for gpu in visible[: parallel.world] if gpu not in divided)
    _check_memory(
        where, _utilization(profile.server.flags.get("gpu-memory-utilization")), whole, cards
    )


def _check_memory(
    where: str, utilization: float, used: tuple[int, ...], cards: Mapping[int, GpuSample]
) -> None:
    for gpu in used:
        total, taken = cards[gpu].memory_total_bytes, cards[gpu].memory_used_bytes
        if not total or taken is None:
            continue
        free = total - taken
        if free < utilization * total:
            raise PreflightError(
                f"{where}: GPU {gpu}: {free / 2**30:.1f} of {total / 2**30:.1f} GiB are free and "
                f"`gpu-memory-utilization` {utilization:g} asks for "
                f"{utilization * total / 2**30:.1f}: end what holds the rest (nvidia-smi, gpu-dash "
                f"orphans), or write {int(100 * free / total) / 100:g} or less"
            )


def _utilization(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return DEFAULT_UTILIZATION
