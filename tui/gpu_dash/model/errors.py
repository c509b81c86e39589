"""The exceptions that gpu-dash raises on purpose.

::

    GpuDashError
     ├─ UsageError        wrong arguments or configuration       exit 2
     ├─ PreflightError    a launch that would not come up        exit 2
     ├─ ServerError       the server or endpoint failed          exit 3
     ├─ GpuSourceError    no usable GPU source                   exit 4
     ├─ RecordError       a session folder or file               exit 2
     ├─ AgentError        the agent cannot be reached           exit 2
     └─ CommandRefused    the agent did not take a command      exit as it says

Each message is one line that says what, where and what to do; a command prints it and leaves
with the class's ``exit_code``.
"""

from __future__ import annotations


class GpuDashError(Exception):
    """The root: something that a person can act on, said in one line."""

    exit_code = 2


class UsageError(GpuDashError):
    """Wrong arguments, a broken profile or settings file."""


class PreflightError(UsageError):
    """A launch that would fail: port taken, model path missing. ``--force`` goes past it."""


class ServerError(GpuDashError):
    """The server or endpoint failed: it died, did not come up, or answered no request."""

    exit_code = 3


class GpuSourceError(GpuDashError):
    """No usable source of GPU readings where one was asked for."""

    exit_code = 4


class RecordError(GpuDashError):
    """A session folder that cannot be made, read or written."""


class AgentError(GpuDashError):
    """The agent cannot be reached, or speaks another protocol."""


class CommandRefused(GpuDashError):
    """The agent did not take a command; it says what a command line should leave with."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
