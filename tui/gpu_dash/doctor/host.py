"""This host: driver, cards, shared memory, limits, orphans, what survives a logout, profilers."""

from __future__ import annotations

import getpass
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

from gpu_dash.doctor.check import Check, fail, ok, warn
from gpu_dash.doctor.links import check_links
from gpu_dash.doctor.settings import check_settings
from gpu_dash.gpu.holders import gpu_memory_by_process
from gpu_dash.gpu.once import read_once
from gpu_dash.model.errors import GpuSourceError
from gpu_dash.model.gpu import GpuSample
from gpu_dash.server.orphans import find_orphans

GIB = 2**30
_SHARED_MEMORY_BYTES = GIB
"""What several workers of one server pass through /dev/shm; docker gives 64 MiB unasked."""
_OPEN_FILES = 65_536
_BUSY_BYTES = GIB
_PROFILERS = ("nsys", "ncu", "rocprofv3", "rocprof")


def examine_host(
    source: str = "auto", gpus_needed: int = 1, power_budget_watts: float | None = None
) -> Iterator[Check]:
    """Check this host.

    Args:
        source: of the readings, as in a profile.
        gpus_needed: by the profile that will be launched.
        power_budget_watts: what this host gives all cards together, where that is known.
    """
    if source != "none":
        yield from _check_cards(source, gpus_needed, power_budget_watts)
    yield _check_shared_memory()
    yield _check_open_files()
    yield _check_orphans()
    yield _check_lingering()
    yield _check_profilers()


def _check_cards(source: str, needed: int, budget_watts: float | None) -> Iterator[Check]:
    try:
        reading = read_once(source)
    except GpuSourceError as error:
        yield fail("driver", str(error), "mend the driver, or choose another --gpu source")
        return
    changed, samples = reading.source, reading.samples
    count = len(changed.gpus)
    yield ok("driver", f"{changed.source}: {count} cards")
    if count < needed:
        action = "lower the parallel sizes, or free the cards that others see"
        yield fail("cards", f"the profile needs {needed} GPUs and there are {count}", action)
    yield _check_memory(samples)
    yield from check_settings(changed, samples, budget_watts)
    if count > 1:
        yield from check_links(needed if needed > 1 else count)


def _check_memory(samples: tuple[GpuSample, ...]) -> Check:
    busy = [
        f"GPU {sample.gpu} {used / GIB:.1f} GiB"
        for sample in samples
        if (used := sample.memory_used_bytes or 0) > _BUSY_BYTES
    ]
    if busy:
        action = "see `gpu-dash gpus`; stop what holds it, or lower gpu-memory-utilization"
        return warn("gpu-memory", f"in use before the launch: {', '.join(busy)}", action)
    return ok("gpu-memory", "no card is in use")


def _check_shared_memory() -> Check:
    try:
        status = os.statvfs("/dev/shm")
    except OSError as error:
        return fail("shm", f"/dev/shm: {error.strerror}", "mount a tmpfs there")
    size, free = status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize
    if free < _SHARED_MEMORY_BYTES:
        action = "docker: --ipc=host or --shm-size 16g; host: mount -o remount,size=16G /dev/shm"
        detail = f"/dev/shm has {free / GIB:.2f} of {size / GIB:.2f} GiB free"
        return warn("shm", f"{detail}: NCCL and the workers need more", action)
    return ok("shm", f"/dev/shm has {free / GIB:.1f} GiB free")


def _check_open_files() -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _OPEN_FILES:
        raisable = hard == resource.RLIM_INFINITY or hard >= _OPEN_FILES
        by_root = "raise nofile in /etc/security/limits.conf or the unit's LimitNOFILE="
        action = f"ulimit -n {_OPEN_FILES}" if raisable else by_root
        return warn("open-files", f"{soft:,} open files are allowed", action)
    return ok("open-files", "enough open files are allowed")


def _check_orphans() -> Check:
    """Engines whose API server is gone hold their cards while the port is free."""
    orphans = find_orphans(gpu_memory_by_process())
    if orphans:
        found = ", ".join(map(str, orphans))
        return fail("orphans", f"engines without a server: {found}", "gpu-dash orphans --end")
    return ok("orphans", "no engine without a server")


def _check_lingering() -> Check:
    if not Path("/run/systemd/system").is_dir():
        return ok("lingering", "no systemd here, so a logout ends nothing")
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    if Path("/var/lib/systemd/linger", user).exists():
        return ok("lingering", f"{user}'s processes may outlive the login")
    action = f"loginctl enable-linger {user}, where logind has KillUserProcesses=yes"
    return warn("lingering", "a logout may end the server, if logind is set to do that", action)


def _check_profilers() -> Check:
    """Which one to reach for: by the vendor whose management program is here."""
    found = [name for name in _PROFILERS if shutil.which(name)]
    is_amd = shutil.which("nvidia-smi") is None and any(map(shutil.which, ("amd-smi", "rocm-smi")))
    reach = (
        "rocprofv3 --hip-trace --kernel-trace -- vllm serve …"
        if is_amd
        else "nsys profile --trace=cuda,nvtx,osrt -- vllm serve …"
    )
    if found:
        return ok("profiler", f"on the PATH: {', '.join(found)}; where time goes: {reach}")
    return ok("profiler", f"none on the PATH; where time goes says {reach}")
