"""What somebody has set on the cards: persistence, clocks, power limits, as found."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_dash.doctor.ask import ask
from gpu_dash.doctor.check import Check, fail, ok, warn
from gpu_dash.model.events import GpuSourceChanged
from gpu_dash.model.gpu import GpuSample

_FIELDS = ("index", "persistence_mode", "clocks.applications.graphics", "clocks.max.graphics")


def check_settings(
    changed: GpuSourceChanged, samples: tuple[GpuSample, ...], budget_watts: float | None
) -> Iterator[Check]:
    """Persistence mode and clocks where there is an ``nvidia-smi``, and power limits of any card.

    Args:
        changed: the cards.
        samples: one reading of each.
        budget_watts: what this host gives all cards together, where that is known.
    """
    if changed.source == "nvml":
        shown = ask(
            "nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"
        )
        yield from _check_persistence_and_clocks(shown or "")
    yield from _check_power(changed, samples, budget_watts)


def _check_persistence_and_clocks(shown: str) -> Iterator[Check]:
    rows = [[cell.strip() for cell in line.split(",")] for line in shown.splitlines()]
    rows = [row for row in rows if len(row) == len(_FIELDS)]
    if not rows:
        return
    off = [row[0] for row in rows if row[1] == "Disabled"]
    if off:
        action = "sudo nvidia-smi -pm 1, or run nvidia-persistenced"
        detail = f"off on GPU {', '.join(off)}: the driver starts anew with the first program"
        yield warn("persistence", detail, action)
    else:
        yield ok("persistence", "on: the driver stays loaded between programs")
    lowered = [
        f"GPU {gpu} {asked} of {most} MHz"
        for gpu, _, asked, most in rows
        if asked.isdigit() and most.isdigit() and int(asked) < int(most)
    ]
    if lowered:
        action = "if nobody meant that: sudo nvidia-smi -rac; for locked clocks -rgc"
        yield warn("clocks", f"application clocks below the maximum: {', '.join(lowered)}", action)
    else:
        highest = max((row[3] for row in rows), default="")
        yield ok("clocks", f"up to {highest} MHz; no application clock is set below that")


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
