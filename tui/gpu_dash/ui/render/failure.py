"""Why a server failed, in the order in which a person reads it."""

from __future__ import annotations

import re
from typing import NamedTuple

from gpu_dash.logs.grammar import parse
from gpu_dash.model.server import ServerStatus

_ENDING = re.compile(
    r"(?P<ending>exit code \d+|ended by signal \d+(?: \(\w+\))?|ended; its exit code is not known)"
    r"(?:: (?P<cause>.+))?"
)


class Failure(NamedTuple):
    """A failure taken apart.

    Attributes:
        cause: what the server said last, without the head that a log line has; empty if it said
            nothing.
        ending: how the process ended; empty if there was none.
    """

    cause: str
    ending: str


def failure_of(status: ServerStatus) -> Failure:
    """Why the server is not there, from the detail of its status."""
    match = _ENDING.fullmatch(status.detail)
    if match is not None:
        return Failure(parse(match["cause"] or "").message.strip(), match["ending"])
    ending = f"exit code {status.exit_code}" if status.exit_code is not None else ""
    return Failure(status.detail, ending)
