"""Which cards of this host are the server's, and which of them a finding of its log is about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from msgspec.structs import replace

from gpu_dash.gpu.identity import Visible, container_gpus, visible_gpus
from gpu_dash.logs.grammar import parse
from gpu_dash.model.events import Finding
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.profile import Profile
from gpu_dash.model.server import HandleKind, ServerStatus
from gpu_dash.model.workers import Parallel

PROC = Path("/proc")
_SIZES = {
    "tensor": re.compile(r"^(?:--tensor-parallel-size|-tp)(?:=|$)(\d*)"),
    "pipeline": re.compile(r"^(?:--pipeline-parallel-size|-pp)(?:=|$)(\d*)"),
    "data": re.compile(r"^(?:--data-parallel-size|-dp)(?:=|$)(\d*)"),
}
_SUBJECT = re.compile(r"(gpu|rank|tp):(\d+)|pci:([0-9a-f:.]+)")


def cards_of_launch(
    profile: Profile, environment: Mapping[str, str], gpus: Sequence[GpuInfo]
) -> Visible:
    """The cards that a server started from a profile will see.

    A container gets only the variables that the profile names, and the cards that its arguments
    give it, which it counts from 0.
    """
    server = profile.server
    if server.kind is HandleKind.CONTAINER:
        return visible_gpus(server.env, container_gpus(server.container_args, gpus))
    return visible_gpus({**environment, **server.env}, gpus)


def cards_of_process(
    pid: int, gpus: Sequence[GpuInfo], proc: Path = PROC
) -> tuple[tuple[int, ...] | None, Parallel | None]:
    """The cards of a server that runs already, by its own environment and command line.

    Returns:
        Both ``None`` where they cannot be read, as of another account's process.
    """
    try:
        words = _strings(proc / str(pid) / "cmdline")
        pairs = [entry.partition("=") for entry in _strings(proc / str(pid) / "environ")]
    except OSError:
        return None, None
    environment = {name: value for name, _, value in pairs}
    parallel = Parallel(**{kind: _size(words, flag) for kind, flag in _SIZES.items()})
    return visible_gpus(environment, gpus).gpus[: parallel.world], parallel


def _strings(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "replace").split("\0")


def _size(words: Sequence[str], flag: re.Pattern[str]) -> int:
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        match = flag.match(word)
        if match is not None:
            number = match[1] or following
            return int(number) if number.isdigit() and int(number) > 0 else 1
    return 1


def on_card(finding: Finding, status: ServerStatus, gpus: Sequence[GpuInfo]) -> Finding:
    """A finding of the server's log whose subject names the card as this host counts it.

    ``tp:1`` becomes ``tp:1 gpu:3``; ``gpu:1``, which is the server's own count, ``gpu:3``. A
    subject whose card is not known stays as it is.
    """
    match = _SUBJECT.fullmatch(finding.subject)
    if match is None:
        return finding
    if match[3] is not None:
        card = next((info.gpu for info in gpus if info.pci_bus_id.startswith(match[3])), None)
    else:
        card = _card_at(match[1], int(match[2]), finding, status)
    if card is None:
        return finding
    worker = "" if match[1] == "gpu" else f"{finding.subject} "
    return replace(finding, subject=f"{worker}gpu:{card}")


def _card_at(kind: str, number: int, finding: Finding, status: ServerStatus) -> int | None:
    visible, parallel = status.visible_gpus, status.parallel
    if visible is None or parallel is None:
        return None
    if parallel.data == 1 and (kind != "tp" or parallel.pipeline == 1):
        place: int | None = number
    else:
        # the number alone counts within a part of the workers; the process's name says which
        place = parallel.rank_of(parse(finding.message).process)
    return visible[place] if place is not None and place < len(visible) else None
