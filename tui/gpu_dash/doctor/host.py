"""This host: driver, cards, shared memory, limits, orphans, what survives a logout, profilers."""

from __future__ import annotations

import getpass
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil

from gpu_dash.doctor.check import Check, fail, ok, warn
from gpu_dash.gpu.once import read_once
from gpu_dash.model.errors import GpuSourceError
from gpu_dash.model.events import GpuSourceChanged
from gpu_dash.model.gpu import GpuSample

GIB = 2**30
_SHARED_MEMORY_BYTES = GIB
"""What several workers of one server pass through /dev/shm; docker gives 64 MiB unasked."""
_OPEN_FILES = 65_536
_BUSY_BYTES = GIB
_TOPOLOGY_TIMEOUT_S = 20.0


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
    yield from _check_power(changed, samples, budget_watts)
    if count > 1:
        yield _check_topology()
        yield _check_iommu()


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


def _check_power(
    changed: GpuSourceChanged, samples: tuple[GpuSample, ...], budget_watts: float | None
) -> Iterator[Check]:
    """The limits as found, and their sum against what the host can give."""
    defaults = {card.gpu: card.power_limit_default_watts for card in changed.gpus}
    limits = {sample.gpu: sample.power_limit_watts for sample in samples}
    lowered = [
        f"GPU {gpu} {limit:.0f} of {defaults[gpu]:.0f} W"
        for gpu, limit in limits.items()
        if limit is not None and defaults.get(gpu) is not None and limit < (defaults[gpu] or 0) - 1
    ]
    if lowered:
        action = "if nobody meant that: nvidia-smi -pl WATTS, or rocm-smi --resetpoweroverdrive"
        yield warn("power-limit", f"below the default: {', '.join(lowered)}", action)
    known = [limit for limit in limits.values() if limit is not None]
    if not known:
        yield ok("power", "no card tells its power limit")
        return
    total = sum(known)
    full = f"the cards may draw {total:,.0f} W together at full load"
    if budget_watts is None:
        yield ok("power", f"{full}; set gpu.power_budget_watts in the profile to compare")
    elif total > budget_watts:
        each = budget_watts / len(known)
        action = f"lower each limit to {each:.0f} W (nvidia-smi -pl {each:.0f}), or use fewer cards"
        yield fail("power", f"{full}, and the budget is {budget_watts:,.0f} W", action)
    else:
        yield ok("power", f"{full} of a budget of {budget_watts:,.0f} W")


def _check_topology() -> Check:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ok("topology", "no nvidia-smi here to ask for the links between the cards")
    try:
        shown = subprocess.run(
            [program, "topo", "-m"],
            capture_output=True,
            timeout=_TOPOLOGY_TIMEOUT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError) as error:
        return warn("topology", f"nvidia-smi topo -m: {error}", "see whether the driver answers")
    words = {word for line in shown.splitlines() if line.startswith("GPU") for word in line.split()}
    if any(word.startswith("NV") and word[2:].isdigit() for word in words):
        return ok("topology", "NVLink between cards: tensor parallel is at home here")
    if words & {"SYS", "NODE"}:
        action = "keep a TP group on one socket, or use pipeline parallel between sockets"
        return warn("topology", "some cards reach each other only through the CPUs", action)
    return ok("topology", "the cards reach each other over PCIe switches")


def _check_iommu() -> Check:
    units = Path("/sys/class/iommu")
    if units.is_dir() and any(units.iterdir()):
        action = "if NCCL hangs at the start: NCCL_P2P_DISABLE=1, or switch IOMMU and ACS off"
        return warn("iommu", "an IOMMU is on: it can break transfers between cards", action)
    return ok("iommu", "no IOMMU in the way of transfers between cards")


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
    found = []
    for process in psutil.process_iter(["pid", "ppid", "cmdline", "uids"]):
        words = process.info["cmdline"] or [""]
        uids = process.info["uids"]
        is_ours = uids is not None and uids.real == os.getuid()
        if is_ours and process.info["ppid"] == 1 and words[0].startswith("VLLM::"):
            found.append(f"{words[0].split()[0]} (pid {process.info['pid']})")
    if found:
        action = "they hold GPU memory: end them with kill, after a look that nobody uses them"
        return fail("orphans", f"engines without a server: {', '.join(found)}", action)
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
    found = [name for name in ("nsys", "ncu", "rocprofv3", "rocprof") if shutil.which(name)]
    if found:
        return ok("profiler", f"on the PATH: {', '.join(found)}")
    return ok("profiler", "none on the PATH; nsys (NVIDIA) or rocprofv3 (AMD) show where time goes")
