"""The servers that other agents of this account look after on this host.

A server that loads its model has not bound its port yet and holds little memory: only who launched
it knows what it will take. So the ports and cards of all launches are compared before the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from gpu_dash.agent.home import all_homes
from gpu_dash.agent.state_file import SessionState, load_state
from gpu_dash.model.errors import PreflightError
from gpu_dash.server.processes import is_alive


def running_sessions() -> Iterator[SessionState]:
    """The sessions on this host whose server process lives."""
    for home in all_homes():
        state = load_state(home.state_path)
        if state is not None and state.process is not None and is_alive(state.process.server):
            yield state


def check_neighbours(
    where: str,
    port: int,
    gpus: tuple[int, ...] | None,
    source: str,
    sessions: Iterable[SessionState],
) -> None:
    """Refuse a port or a card that one of our other servers has.

    Args:
        where: the profile, for the message.
        port: that is wanted; 0: any.
        gpus: the cards that are wanted; ``None``: not known which.
        source: of the readings; simulated cards are everybody's own.
        sessions: the ones that run.

    Raises:
        PreflightError: naming the server that has it.
    """
    for session in sessions:
        name = session.status.profile or session.session
        if port and urlsplit(session.status.base_url).port == port:
            raise PreflightError(
                f"{where}: `server.port`: {port} belongs to {name}, which is "
                f"{session.status.state}; stop it (gpu-dash status) or choose another port"
            )
        shared = sorted(set(gpus or ()) & set(session.status.visible_gpus or ()))
        if shared and "sim" not in (source, session.gpu_source):
            raise PreflightError(
                f"{where}: GPU {', '.join(map(str, shared))} is used by {name}, which is "
                f"{session.status.state}; stop it, or set CUDA_VISIBLE_DEVICES to other cards"
            )
