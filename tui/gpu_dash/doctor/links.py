"""How the cards of this host reach each other, and what that means for tensor parallel."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpu_dash.doctor.ask import ask
from gpu_dash.doctor.check import Check, ok, warn

IOMMU_GROUPS = Path("/sys/kernel/iommu_groups")
_THROUGH_THE_CPUS = ("SYS", "NODE")
_NO_DIRECT_WAY = {
    "CNS": "the chipset does not support it",
    "GNS": "the cards do not support it",
    "TNS": "the topology does not support it",
    "DR": "a registry key of the driver forbids it",
    "NS": "not supported",
    "U": "the driver does not know",
}
"""What ``nvidia-smi topo -p2p`` says in place of OK."""
_SHOWN_PAIRS = 4


def check_links(cards: int) -> Iterator[Check]:
    """Links, direct access, and what the IOMMU does to it.

    Args:
        cards: how many the launch will use.
    """
    shown = ask("nvidia-smi", "topo", "-m")
    if shown is None:
        yield ok("topology", "no nvidia-smi here to ask for the links between the cards")
    else:
        yield _judge_links(matrix(shown), cards)
        yield from _check_direct_access(cards)
    yield _check_iommu()


def matrix(text: str) -> dict[tuple[int, int], str]:
    """What a table of ``nvidia-smi topo`` says of each pair: ``(0, 1)`` → ``NV18``."""
    columns: list[int] = []
    links: dict[tuple[int, int], str] = {}
    for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines():
        words = line.split()
        names = [word for word in words if re.fullmatch(r"GPU\d+", word)]
        if not columns and len(names) > 1:
            columns = [int(name[3:]) for name in names]
        elif words and re.fullmatch(r"GPU\d+", words[0]):
            row = int(words[0][3:])
            for column, link in zip(columns, words[1:], strict=False):
                if row < column:
                    links[row, column] = link
    return links


def _judge_links(links: Mapping[tuple[int, int], str], cards: int) -> Check:
    pairs = {pair: link for pair, link in links.items() if max(pair) < cards} or dict(links)
    if not pairs:
        return ok("topology", "nvidia-smi names no links between cards")
    words = _by_link(pairs)
    if all(link.startswith("NV") for link in pairs.values()):
        return ok("topology", f"{words}: tensor parallel is at home here")
    if any(link in _THROUGH_THE_CPUS for link in pairs.values()):
        action = (
            "keep a TP group on one socket (CUDA_VISIBLE_DEVICES), or write "
            "--pipeline-parallel-size across sockets"
        )
        return warn("topology", f"{words}: some cards reach each other through the CPUs", action)
    if any(link.startswith("NV") for link in pairs.values()):
        action = "put the cards of one TP group where NVLink joins them (CUDA_VISIBLE_DEVICES)"
        return warn("topology", f"{words}: NVLink joins only some of them", action)
    return ok("topology", f"{words}: over PCIe, so TP costs more of each token than with NVLink")


def _by_link(pairs: Mapping[tuple[int, int], str]) -> str:
    """``NV18 between 0-1, 0-2 … (28 pairs)``."""
    parts = []
    by_link = sorted(pairs.items(), key=lambda item: item[1])
    for link, group in itertools.groupby(by_link, key=lambda item: item[1]):
        names = [f"{one}-{other}" for (one, other), _ in group]
        more = f" … ({len(names)} pairs)" if len(names) > _SHOWN_PAIRS else ""
        parts.append(f"{link} between {', '.join(names[:_SHOWN_PAIRS])}{more}")
    return "; ".join(parts)


def _check_direct_access(cards: int) -> Iterator[Check]:
    shown = ask("nvidia-smi", "topo", "-p2p", "r")
    pairs = {} if shown is None else matrix(shown)
    closed = {
        pair: state
        for pair, state in pairs.items()
        if max(pair) < max(cards, 2) and state in _NO_DIRECT_WAY
    }
    if closed:
        why = _NO_DIRECT_WAY[next(iter(closed.values()))]
        action = (
            "NCCL goes through host memory: slower; if it hangs at the start, NCCL_P2P_DISABLE=1"
        )
        yield warn("p2p", f"no direct access ({_by_link(closed)}): {why}", action)
    elif pairs:
        yield ok("p2p", "the cards may read each other's memory")


def _check_iommu(groups: Path | None = None) -> Check:
    """A translating IOMMU, or ACS on a bridge, sends transfers between cards through the CPU: NCCL
    then hangs at its first collective, or is slow."""
    kinds = set()
    for path in (groups or IOMMU_GROUPS).glob("*/type"):
        try:
            kinds.add(path.read_text(encoding="ascii", errors="replace").strip())
        except OSError:
            continue
    if not kinds:
        return ok("iommu", "no IOMMU in the way of transfers between cards")
    if kinds == {"identity"}:
        return ok("iommu", "the IOMMU passes addresses through (iommu=pt)")
    action = (
        "if NCCL hangs after `vLLM is using nccl`: NCCL_P2P_DISABLE=1; for good: iommu=pt on the "
        "kernel's command line, and ACS off in the BIOS (lspci -vvv | grep ACSCtl)"
    )
    return warn("iommu", "an IOMMU translates addresses: it can break transfers", action)
