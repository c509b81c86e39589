"""Whether the cards that are there can hold what a profile asks for."""

from __future__ import annotations

from collections.abc import Mapping

from gpu_dash.model.errors import PreflightError
from gpu_dash.model.gpu import GpuSample
from gpu_dash.model.profile import Profile
from gpu_dash.server.command_line import gpus_of
from gpu_dash.server.model_check import parallel_size

DEFAULT_UTILIZATION = 0.9
"""``--gpu-memory-utilization`` of the vLLM versions that ask for least."""


def check_gpus(
    profile: Profile, environment: Mapping[str, str], cards: Mapping[int, GpuSample]
) -> None:
    """Refuse a launch that asks for more cards, or more of their memory, than is free.

    Args:
        profile: a checked profile.
        environment: of the person who launches.
        cards: the newest reading of each card of this host; without any there is nothing to say.

    Raises:
        PreflightError: with what to write instead, or what to look for.
    """
    if not cards or profile.gpu.source == "sim":
        return
    flags = profile.server.flags
    where = f"profile {profile.name!r}"
    tensor = parallel_size(flags, "tensor-parallel-size", "tp")
    pipeline = parallel_size(flags, "pipeline-parallel-size", "pp")
    used = gpus_of(profile, environment, sorted(cards))
    if used is None:
        return  # cards named by UUID
    missing = [gpu for gpu in used if gpu not in cards]
    if missing:
        raise PreflightError(
            f"{where}: CUDA_VISIBLE_DEVICES names GPU {missing[0]}, and this host has "
            f"{len(cards)} ({', '.join(map(str, sorted(cards)))})"
        )
    if len(used) < tensor * pipeline:
        raise PreflightError(
            f"{where}: `tensor-parallel-size`: {tensor} x {pipeline} (pipeline) needs "
            f"{tensor * pipeline} GPUs and {len(used)} can be seen; write a smaller size, or see "
            "CUDA_VISIBLE_DEVICES"
        )
    _check_memory(where, _utilization(flags.get("gpu-memory-utilization")), used, cards)


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
