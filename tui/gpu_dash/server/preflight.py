"""What can be known before a launch, and would cost vLLM 9 to 30 seconds to find out."""

from __future__ import annotations

import errno
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

from gpu_dash.model.errors import PreflightError
from gpu_dash.model.profile import Profile
from gpu_dash.model.server import HandleKind
from gpu_dash.server.command_line import command_line
from gpu_dash.server.flags.check import CheckedLaunch, Correction, Why
from gpu_dash.server.flags.correct import correct_profile
from gpu_dash.server.flags.history import parse_release, show
from gpu_dash.server.flags.installed import release_on_disk
from gpu_dash.server.model_check import check_model
from gpu_dash.server.orphans import find_orphans


def check_launch(profile: Profile, environment: Mapping[str, str], folder: str) -> None:
    """Refuse a launch that would not come up.

    Args:
        profile: a checked profile.
        environment: of the person who launches (``PATH``).
        folder: working directory of that person, for relative paths.

    Raises:
        PreflightError: the first thing that stands in the way, with what to do.
    """
    server = profile.server
    where = f"profile {profile.name!r}"
    program = server.command[0]
    if program != "{python}" and shutil.which(program, path=environment.get("PATH")) is None:
        raise PreflightError(
            f"{where}: `server.command`: there is no program {program!r} on the PATH; "
            "activate its environment or write its full path"
        )
    if server.kind is HandleKind.PROCESS and looks_like_path(server.model):
        model = Path(folder, server.model).expanduser()
        if not model.exists():
            raise PreflightError(f"{where}: `server.model`: {model} does not exist")
    if server.compose_file is not None:
        file = Path(folder, server.compose_file).expanduser()
        if not file.is_file():
            raise PreflightError(f"{where}: `server.compose_file`: {file} is no file")
    _check_flags(profile, environment, where)
    if server.port:
        check_port(server.host, server.port, where)
    if server.kind is HandleKind.PROCESS:
        check_model(profile, environment, folder)
    if profile.gpu.source != "sim":
        check_orphans(where)


def check_orphans(where: str) -> None:
    """Refuse while processes of an earlier vLLM are left, which hold the cards' memory.

    Raises:
        PreflightError: naming them.
    """
    orphans = find_orphans()
    if orphans:
        raise PreflightError(
            f"{where}: what an earlier vLLM has left behind holds the cards' memory: "
            f"{', '.join(map(str, orphans))}; end it with gpu-dash orphans --end"
        )


def _check_flags(profile: Profile, environment: Mapping[str, str], where: str) -> None:
    """Refuse what the vLLM that is installed would refuse after its imports; where that cannot be
    told, the one that the profile names.

    Raises:
        PreflightError: every such flag, what to write instead, and the line that would do.
    """
    server, release = profile.server, None
    if server.kind is HandleKind.PROCESS and server.command[0] != "{python}":
        release = release_on_disk(server.command[0], environment.get("PATH"))
    if release is None:
        if profile.vllm_version is None:
            return
        release = parse_release(profile.vllm_version)
    right = correct_profile(profile, release)
    refused = refusals(right.checked)
    if not refused:
        return
    details = "; ".join(one.detail for one in refused)
    offer = "write them right in the profile"
    if not right.left:
        line = command_line(right.profile.server)
        offer = (
            f"corrected: {line} (--corrected starts that, "
            f"gpu-dash profiles check {profile.name} --write keeps it)"
        )
    raise PreflightError(f"{where}: `server.flags`, for vLLM {show(release)}: {details}; {offer}")


def refusals(checked: CheckedLaunch) -> list[Correction]:
    """What would end the launch, and not only be without effect."""
    return [
        one
        for one in checked.corrections
        if one.why is not Why.NO_EFFECT and not one.name.startswith("VLLM_")
    ]


def looks_like_path(model: str) -> bool:
    """Whether a model is a path and no repository id (which has no leading ``/``, ``.``, ``~``)."""
    return model.startswith(("/", "./", "../", "~"))


def check_port(host: str, port: int, where: str) -> None:
    """Refuse a port that somebody listens on, or that we may not bind.

    ``SO_REUSEADDR`` is set, as vLLM sets it: a port in TIME_WAIT is free for it.

    Raises:
        PreflightError: with what to do.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            reason = {
                errno.EADDRINUSE: "is taken; stop what listens there or choose another port",
                errno.EACCES: "needs root; choose one from 1024 up",
            }.get(error.errno or 0, f"cannot be bound on {host}: {error.strerror}")
            raise PreflightError(f"{where}: `server.port`: {port} {reason}") from error


def free_port(host: str, where: str) -> int:
    """A port that is free on ``host`` at this moment.

    Raises:
        PreflightError: the host is no address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise PreflightError(f"{where}: `server.host`: {host}: {error.strerror}") from error
        port: int = probe.getsockname()[1]
        return port
